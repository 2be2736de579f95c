# An image that has the static program, certificates of authorities, licences, and nothing else:
#
#     docker build --tag plimsoll .
#     docker run --rm --network host plimsoll http://127.0.0.1:8080/ --rate 100 --duration 10s
#
# dist/image makes the last stage from the files that dist/build has staged, without a registry. An image that is to be
# published from here names what it is built on by its digest: dist/image --from, or
# --build-arg BASE=rust:1.95-bookworm@sha256:…

ARG BASE=rust:1.95-bookworm
FROM ${BASE} AS build
# Any version of these gives the same program.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates jq python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /plimsoll
COPY . .
RUN dist/build --out /packages && dist/rootfs /packages/plimsoll-*/ /rootfs

FROM scratch
COPY --from=build /rootfs/ /
LABEL org.opencontainers.image.title="Plimsoll" \
      org.opencontainers.image.description="A load generator that finds and proves the load line of a server" \
      org.opencontainers.image.licenses="Apache-2.0 OR MIT"
# Nobody: it needs no rights, and files that it writes go into a folder that anybody may write to.
USER 65532:65532
WORKDIR /data
ENTRYPOINT ["/usr/bin/plimsoll"]
CMD ["--help"]
