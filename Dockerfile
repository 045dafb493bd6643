# syntax=docker/dockerfile:1
# tidegate as an image: built in one stage, run in another that holds nothing but the program and its files.
#
#     docker build -t tidegate .
#     docker run -p 127.0.0.1:8088:8088 -v tidegate-data:/data -e OPENAI_BASE_URL=… tidegate
#
# No container engine runs where this project is built, so this file is untested. What it sets up is tested without
# it: `cargo xtask test --only sandbox` runs the same binary as a user without rights on a read-only root.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
# SQLite and ring are compiled from C.
RUN apt-get update && apt-get install -y --no-install-recommends build-essential pkg-config && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cargo build --release --locked --package tidegate

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 65532 --home-dir /srv/tidegate --shell /usr/sbin/nologin tidegate \
    && install -d -o tidegate -g tidegate -m 0700 /data
WORKDIR /srv/tidegate
COPY --from=build /src/target/release/tidegate /usr/local/bin/tidegate
COPY --chmod=0755 scripts/container-health.sh /usr/local/bin/container-health
# The instructions, skills and documents that come with it. Mount folders of your own over them; the tool that
# writes files needs a knowledge-bank that user 65532 may write to.
COPY AGENT.md mcp_servers.json ./
COPY skills ./skills
COPY routing ./routing
COPY memory-kinds.toml ./
COPY knowledge-bank ./knowledge-bank
USER tidegate
# Everything it writes lies in /data; the rest of the file system may be read-only.
ENV TIDEGATE_BIND=0.0.0.0:8088 \
    TIDEGATE_SERVER__ALLOWED_HOSTS=localhost,127.0.0.1 \
    TIDEGATE_DATA_DIR=/data/db \
    TIDEGATE_LOGS__FOLDER=/data/logs
VOLUME /data
EXPOSE 8088
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s \
    CMD ["/usr/local/bin/container-health"]
CMD ["tidegate", "serve"]
