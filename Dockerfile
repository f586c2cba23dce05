# One static binary in an empty image, run as nobody. Mount the configuration at /switchboard.yaml, where
# the health check finds it too; inside a container listen must not be loopback.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY handoff handoff
COPY realtime realtime
COPY servers servers
COPY sessions sessions
COPY web web
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.releaseVersion=$VERSION" -o /switchboard ./cmd/switchboard
RUN mkdir -m 0700 /state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /switchboard /switchboard
COPY --from=build --chown=65532:65532 /state /state
ENV XDG_STATE_HOME=/state
VOLUME /state
USER 65532:65532
EXPOSE 8080/tcp 8443/udp
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/switchboard", "health"]
ENTRYPOINT ["/switchboard"]
