package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	claimsInUse  = "dra_resource_claims_in_use"
	processStart = "process_start_time_seconds"
	// The kubelet's own name for the sum over all drivers
	// (pkg/kubelet/metrics/metrics.go, DRAResourceClaimsInUseAnyDriver).
	anyDriver = "<any>"
)

// found is what the kubelet's metrics tell.
type found struct {
	claims  map[string]int // by driver
	started time.Time
}

// kubeletMetrics asks the kubelet of this very node. Its certificate is its own work, which nobody
// could check, so the address is never anything but loopback: nobody else can answer there.
func kubeletMetrics(ctx context.Context, port int, token string) ([]byte, error) {
	client := http.Client{
		Transport: &http.Transport{
			Proxy:           nil,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	url := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet for its metrics: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet for its metrics: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes))
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's metrics: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		words := strings.TrimSpace(string(body))
		return nil, fmt.Errorf("the kubelet refuses its metrics: %s: %.200s", answer.Status, words)
	}
	return body, nil
}

// readMetrics picks the two metrics out of the text format. A kubelet that tells no start time is an
// error; one without the other metric has prepared nothing since it started, or knows no DRA.
func readMetrics(text []byte) (found, error) {
	read := found{claims: map[string]int{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, driver, value, ok := sample(lines.Text())
		switch {
		case !ok:
		case name == processStart:
			read.started = time.UnixMicro(int64(value * 1e6)).UTC()
		case name == claimsInUse && driver != anyDriver && value > 0:
			read.claims[driver] = int(value)
		}
	}
	if err := lines.Err(); err != nil {
		return read, fmt.Errorf("read the kubelet's metrics: %w", err)
	}
	if read.started.IsZero() {
		return read, fmt.Errorf("the kubelet's metrics tell no %s", processStart)
	}
	return read, nil
}

// sample reads a line `name{driver_name="x"} 1` or `name 1`. Other labels are not understood, for the
// two metrics have none.
func sample(line string) (name, driver string, value float64, ok bool) {
	head, number, cut := cutLast(line, " ")
	if !cut || strings.HasPrefix(line, "#") {
		return "", "", 0, false
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return "", "", 0, false
	}
	name, labels, _ := strings.Cut(head, "{")
	if name == claimsInUse {
		quoted, isDriver := strings.CutPrefix(strings.TrimSuffix(labels, "}"), "driver_name=")
		if driver, err = strconv.Unquote(quoted); err != nil || !isDriver {
			return "", "", 0, false
		}
	}
	return name, driver, value, true
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
