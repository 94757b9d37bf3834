# The match server. Build: docker build -t harken .   Run: docker run -p 8080:8080 -v harken:/data harken
FROM python:3.12-slim

ENV NUMBA_CACHE_DIR=/opt/harken-kernels PYTHONUNBUFFERED=1
WORKDIR /src
COPY pyproject.toml constraints.txt hatch_build.py README.md LICENSE ./
COPY src src
# Kernels are compiled now, for the kind of processor that builds the image: the first event does not wait for them.
RUN pip install --no-cache-dir -c constraints.txt '.[server]' && harken warm-up && chmod -R a+rwX /opt/harken-kernels

RUN useradd --create-home harken && install -d -o harken /data
USER harken
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz')"]
# SIGTERM lets requests finish, and saves the index.
# The names in the URLs of clients, with spaces between them: docker run -e HARKEN_ALLOWED_HOSTS='rules.example.org' …
ENV HARKEN_ALLOWED_HOSTS=localhost
CMD ["harken", "serve", "--host", "0.0.0.0", "--port", "8080", "--store", "/data/harken.db", "--json"]
