"""The match server: subscribe, publish and be notified over HTTP."""
