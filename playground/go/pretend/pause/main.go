// The sandbox of a Pod: it holds the Pod's namespaces until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	// In a Pod that shares its process namespace this is process 1, and every orphan its child:
	// ignoring SIGCHLD lets the system bury them.
	signal.Ignore(syscall.SIGCHLD)
	<-end
}
