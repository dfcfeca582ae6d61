package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	lookEvery     = 100 * time.Millisecond
	registerLimit = 10 * time.Second
)

// place is where the two sockets are.
type place struct{ kubelet, own string }

// serveKubelets registers with the kubelet, and with each new one: a kubelet that starts removes all
// sockets in the folder and makes its own anew, which is the only sign of it. A plugin whose socket
// alone is removed does not notice, as real ones do not.
func (p *plugin) serveKubelets(ctx context.Context, at place) error {
	for ctx.Err() == nil {
		kubelet, err := waitForSocket(ctx, at.kubelet)
		if err != nil {
			return err
		}
		if kubelet == (identity{}) {
			break // told to end
		}
		server, err := p.serve(at.own)
		if err != nil {
			return err
		}
		if err := p.register(ctx, at); err != nil {
			// The socket of a kubelet that is gone, or one that does not answer yet.
			slog.Warn("not registered; trying again", "error", err)
			pause(ctx)
		} else {
			slog.Info("registered", "resource", p.resource, "socket", at.own)
			p.waitForChange(ctx, at.kubelet, kubelet)
		}
		server.Stop()
	}
	return nil
}

func (p *plugin) serve(socket string) (*grpc.Server, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of an earlier run: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen on the plugin's socket: %w", err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() {
		if err := server.Serve(listener); err != nil {
			slog.Error("serving the kubelet ended", "error", err)
		}
	}()
	return server, nil
}

func (p *plugin) register(ctx context.Context, at place) error {
	ctx, cancel := context.WithTimeout(ctx, registerLimit)
	defer cancel()
	connection, err := grpc.NewClient("unix://"+at.kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dial the kubelet: %w", err)
	}
	defer connection.Close()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version:      api.Version,
		Endpoint:     filepath.Base(at.own),
		ResourceName: p.resource,
		Options:      &api.DevicePluginOptions{},
	})
	if err != nil {
		return fmt.Errorf("register %s with the kubelet: %w", p.resource, err)
	}
	return nil
}

// waitForChange returns when the kubelet's socket is another one, or is told to end. A plugin that
// ignores the kubelet waits until it does not any more.
func (p *plugin) waitForChange(ctx context.Context, socket string, known identity) {
	for pause(ctx) {
		faults, _ := p.switches.Now()
		if is := identify(socket); is != known && is != (identity{}) && !faults.IgnoreKubelet {
			slog.Info("the kubelet was started anew")
			return
		}
	}
}

// identity tells two sockets of one path apart. The moment counts too: a file system may give the
// number of a removed file to the next one at once.
type identity struct {
	inode  uint64
	moment int64
}

// identify returns the zero identity where there is no socket.
func identify(path string) identity {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return identity{}
	}
	return identity{stat.Ino, stat.Ctim.Nano()}
}

// waitForSocket returns the zero identity when told to end.
func waitForSocket(ctx context.Context, path string) (identity, error) {
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); err != nil {
		return identity{}, fmt.Errorf("find the kubelet's folder of device plugins: %w", err)
	}
	for {
		if is := identify(path); is != (identity{}) {
			return is, nil
		}
		if !pause(ctx) {
			return identity{}, nil
		}
	}
}

// pause returns false when told to end.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(lookEvery):
		return true
	}
}
