# Short names only; everything is in scripts/.
.PHONY: test demo interop examples docs
test:
	scripts/test
demo:
	go run ./cmd/holdfast demo
interop:
	scripts/interop
examples:
	scripts/examples
docs:
	go test ./internal/flow -run States -rewrite
	go test ./httpapi -run OpenAPI -rewrite
