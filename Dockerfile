# schemactl with git, for build servers: docker build -t schemactl .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/repository" schemactl check
# The base is an image for several platforms, by its digest: 3.13.15 on Debian 13.
FROM python:3.13-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285 AS base

FROM base AS build
COPY . /source
RUN /source/ci/install.sh /opt/schemactl \
    && /opt/schemactl/bin/python -I -m pip --quiet uninstall --yes pip \
    && cp -r /source/ci /opt/schemactl/ci

FROM base
# Debian keeps no older version of a package, so a pinned one would end the build some day.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home schemactl
COPY --from=build /opt/schemactl /opt/schemactl
ENV PATH=/opt/schemactl/bin:$PATH
USER 10001
WORKDIR /repository
ENTRYPOINT ["schemactl"]
CMD ["--help"]
