# The tasks of this repository. All of them need Go 1.26; make test installs the rest.
.DEFAULT_GOAL := help
.PHONY: help run page build release tools lint test stress soak

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s%s\n", $$1, $$2}' Makefile

run: ## start Switchboard; ARGS="--codex" gives it flags
	go run ./cmd/switchboard $(ARGS)

page: ## bundle the page anew into web/bundle, after a change in web/page
	go generate ./web

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

build: ## build ./switchboard, one static file
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o switchboard ./cmd/switchboard

release: ## archives and checksums for Linux and macOS in ./dist; the same commit and Go make the same bytes
	go run ./.ci/release -version "$(VERSION)" -revision "$(REVISION)" -out dist $(PLATFORMS)

tools: ## install what the tests need and this machine lacks
	.ci/tools

lint: ## format, vet, modernize, staticcheck, go.mod
	.ci/lint

test: tools ## all tests; a change has to pass them and make lint
	.ci/test
	FUZZ_TARGETS='Door|Frame|DataChannel|Offer|TooDeep' .ci/fuzz 2s

stress: tools ## all tests repeatedly while other programs use all CPUs; takes hours, lists the tests that ever failed
	.ci/stress

soak: tools ## the long forms of the proofs, with their figures, and of the fuzz targets; takes about an hour and a half
	SWITCHBOARD_SOAK=1 go test -timeout 30m -v -run '^TestProofPanel$$' ./cmd/switchboard
	SWITCHBOARD_SOAK=1 go test -race -timeout 90m -v -run '^TestProof' -skip '^TestProofPanel$$' ./cmd/switchboard
	go test -race -timeout 60m -run '^TestRandomConversations$$' ./handoff/call -conversations 20000
	FUZZ_GUIDED=1 .ci/fuzz 2m
