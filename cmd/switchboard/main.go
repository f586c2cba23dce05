package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"switchboard/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, _ := zap.NewDevelopment()
	s, err := newService(ctx, plan{Listen: "127.0.0.1:8080", StateDir: "/tmp/sbstate", Keys: []web.Key{web.NewKey("owner", "testtesttesttest")}, Shown: "testtesttesttest"}, log)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.real)
	fmt.Println(s.link)
	fmt.Println(s.run(ctx))
}
