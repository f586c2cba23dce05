# What there is to do here. Everything needs Go 1.26; make test installs the rest.
.DEFAULT_GOAL := help
.PHONY: help run build tools lint test stress soak

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s%s\n", $$1, $$2}' Makefile

run: ## start Switchboard; ARGS="--codex" gives it flags
	go run ./cmd/switchboard $(ARGS)

build: ## build ./switchboard, one static file
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o switchboard ./cmd/switchboard

tools: ## install what the tests need and this machine lacks
	.ci/tools

lint: ## format, vet, modernize, staticcheck, go.mod
	.ci/lint

test: tools lint ## everything that a change has to pass
	.ci/test
	FUZZ_TARGETS='Door|Frame|DataChannel|Offer|TooDeep' .ci/fuzz 2s

stress: tools ## everything again and again beside busy CPUs; hours, ends with what was not always green
	.ci/stress

soak: tools ## the long form of the proofs, with their figures, and of the fuzz targets; about an hour and a half
	SWITCHBOARD_SOAK=1 go test -race -timeout 90m -v -run '^TestProof' ./cmd/switchboard
	go test -race -timeout 60m -run '^TestRandomConversations$$' ./handoff/call -conversations 20000
	FUZZ_GUIDED=1 .ci/fuzz 2m
