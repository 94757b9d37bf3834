"""The paths of the API, by what they are about. Each reads a request, asks the service, and shapes the answer."""
