package devicefile

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func TestAFileOfFaults(t *testing.T) {
	tests := map[string]struct {
		content string // "" means no file
		driver  Faults
		fails   bool
	}{
		"no file means that nothing is wrong": {},
		"what is said of another driver does not count": {
			content: `{"drivers": {"b": {"silent": true}}}`,
		},
		"all that can be wrong with a device": {
			content: `{"drivers": {"a": {"gone": ["d"], "health": {"e": {"state": "Unhealthy", "message": "ECC"}}}}}`,
			driver:  Faults{Gone: []string{"d"}, Health: map[string]Health{"e": {"Unhealthy", "ECC"}}},
		},
		"a word that nobody knows is refused": {content: `{"drivers": {"a": {"gonne": ["d"]}}}`, fails: true},
		"half a file is refused":              {content: `{"drivers": {"a"`, fails: true},
		"a pattern that is none is refused": {
			content: `{"drivers": {"a": {"prepare": [{"claims": "[", "fail": "x"}]}}}`, fails: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "faults.json")
			if test.content != "" {
				write(t, path, test.content)
			}
			file, err := LoadFaults(path)
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			if found := file.Drivers["a"]; !reflect.DeepEqual(found, test.driver) {
				t.Errorf("read %+v", found)
			}
		})
	}
}

func TestARuleIsAboutClaims(t *testing.T) {
	tests := map[string]bool{"": true, "*": true, "ns/a": true, "ns/*": true, "*/a": true, "ns/b": false, "n/*": false}
	for pattern, matches := range tests {
		if (Rule{Claims: pattern}).Matches("ns/a") != matches {
			t.Errorf("%q does not tell right", pattern)
		}
	}
}

func TestWhatARuleDoesToACall(t *testing.T) {
	prepares := func(faults Faults) []Rule { return faults.Prepare }
	tests := map[string]struct {
		rules []Rule
		said  []string // by call, "" for success
		whole bool
	}{
		"no rule, no harm":              {nil, []string{""}, false},
		"a rule about another claim":    {[]Rule{{Claims: "ns/b", Fail: "fire"}}, []string{""}, false},
		"a claim is refused":            {[]Rule{{Fail: "fire"}}, []string{"fire", "fire"}, false},
		"the whole call fails":          {[]Rule{{Fail: "fire", WholeCall: true}}, []string{"fire"}, true},
		"a rule is spent after 2 times": {[]Rule{{Fail: "fire", Times: 2}}, []string{"fire", "fire", "", ""}, false},
		"the first rule counts":         {[]Rule{{Fail: "one"}, {Fail: "two"}}, []string{"one"}, false},
		"then the next one, where the first is spent": {
			[]Rule{{Fail: "one", Times: 1}, {Fail: "two"}}, []string{"one", "two", "two"}, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := switched(t, Faults{Prepare: test.rules})
			for call, said := range test.said {
				err := s.Obstruct(context.Background(), prepares, "ns/a")
				if (err == nil) != (said == "") || (err != nil && err.Error() != said) {
					t.Errorf("call %d: %v", call, err)
				}
				if whole := (CallFailed{}); err != nil && errors.As(err, &whole) != test.whole {
					t.Errorf("call %d: the whole call fails: %v", call, !test.whole)
				}
			}
		})
	}
}

func TestAHangingCallGoesOnWhenTheRuleIsTakenBack(t *testing.T) {
	s := switched(t, Faults{Prepare: []Rule{{Hang: true}}})
	answered := make(chan error)
	go func() {
		answered <- s.Obstruct(context.Background(), func(f Faults) []Rule { return f.Prepare }, "ns/a")
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered at once: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	write(t, s.path, "{}")
	s.look()
	if err := <-answered; err != nil {
		t.Errorf("mended, but %v", err)
	}
}

func TestAHangingCallEndsWithItsCaller(t *testing.T) {
	s := switched(t, Faults{Prepare: []Rule{{Hang: true}}})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := s.Obstruct(ctx, func(f Faults) []Rule { return f.Prepare }, "ns/a")
	if whole := (CallFailed{}); !errors.As(err, &whole) {
		t.Errorf("ended with %v", err)
	}
}

func TestSwitchesFollowTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.json")
	write(t, path, `{"drivers": {"a": {"down": true}}}`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opened := make(chan *Switches)
	go func() {
		s, err := OpenSwitches(ctx, path, func(file FaultsFile) Faults { return file.Drivers["a"] })
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	select {
	case <-opened:
		t.Fatal("it is up though it is told to be down")
	case <-time.After(3 * Poll):
	}
	write(t, path, `{"drivers": {"a": {"crash": 7}}}`) // an old crash is history
	s := <-opened
	_, changed := s.Now()
	go s.Follow(ctx)
	write(t, path, `{"drivers": {"a": {"crash": 7, "silent": true}}}`)
	<-changed
	if now, _ := s.Now(); !now.Silent {
		t.Errorf("it does not know: %+v", now)
	}
}

func switched(t *testing.T, faults Faults) *Switches {
	t.Helper()
	content, err := json.Marshal(FaultsFile{Drivers: map[string]Faults{"a": faults}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "faults.json")
	write(t, path, string(content))
	s, err := OpenSwitches(t.Context(), path, func(file FaultsFile) Faults { return file.Drivers["a"] })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, path, content string) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}
