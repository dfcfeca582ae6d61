package devicefile

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"time"
)

// Poll is how often the file of faults is looked at: a test waits no longer than that.
const Poll = 50 * time.Millisecond

// Crashed is the exit code of a program that was told to die.
const Crashed = 137

// Switches are the faults of one program as they are now.
type Switches struct {
	path    string
	choose  func(FaultsFile) Faults
	mutex   sync.Mutex
	now     Faults
	used    map[Rule]int
	changed chan struct{} // closed at the next change
	crashes int           // the number found at the start
	// The last thing that was wrong with the file, said once.
	complained string
}

// OpenSwitches reads the file and blocks while it says that the program is down, or cannot be read.
// `choose` picks the program's own part.
func OpenSwitches(ctx context.Context, path string, choose func(FaultsFile) Faults) (*Switches, error) {
	s := &Switches{path: path, choose: choose, changed: make(chan struct{}), used: map[Rule]int{}}
	for waited := false; ; waited = true {
		file, err := LoadFaults(path)
		if s.now = choose(file); err == nil && !s.now.Down {
			s.crashes = s.now.Crash
			return s, nil
		}
		if !waited {
			slog.Info("waiting until the faults say that this program is up", "file", path, "error", err)
		}
		if !sleep(ctx, Poll) {
			return nil, ctx.Err()
		}
	}
}

// Follow keeps the switches up to date until the context ends. It ends the process when told to.
func (s *Switches) Follow(ctx context.Context) {
	for sleep(ctx, Poll) {
		s.look()
	}
}

// look reads the file. One that is half written, or wrong, changes nothing.
func (s *Switches) look() {
	file, err := LoadFaults(s.path)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err != nil {
		if s.complained != err.Error() {
			s.complained = err.Error()
			slog.Error("the faults stay as they were", "error", err)
		}
		return
	}
	s.complained = ""
	s.set(s.choose(file))
}

// set needs the mutex.
func (s *Switches) set(faults Faults) {
	if reflect.DeepEqual(faults, s.now) {
		return
	}
	slog.Info("faults changed", "faults", faults)
	if faults.Down || faults.Crash > s.crashes {
		os.Exit(Crashed) // as a killed process would: sockets stay, nobody is told
	}
	s.now, s.used = faults, map[Rule]int{}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Now is what is wrong at this moment, and a channel that is closed when that changes.
func (s *Switches) Now() (Faults, <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now, s.changed
}

// CallFailed is a fault that breaks the whole call, not one claim in it.
type CallFailed struct{ error }

// Obstruct does to a call what the first rule about this claim says: it takes its time, hangs or
// fails. `rules` picks the rules that count for this kind of call. What was written before the call
// came counts, even if the file was not looked at since.
func (s *Switches) Obstruct(ctx context.Context, rules func(Faults) []Rule, claim string) error {
	s.look()
	for {
		rule, changed := s.take(rules, claim)
		if rule == nil {
			return nil
		}
		if !sleep(ctx, time.Duration(rule.SlowMilliseconds)*time.Millisecond) {
			return CallFailed{ctx.Err()}
		}
		switch {
		case rule.Hang:
			select {
			case <-ctx.Done():
				return CallFailed{ctx.Err()}
			case <-changed:
				continue // perhaps mended: look again
			}
		case rule.Fail != "" && rule.WholeCall:
			return CallFailed{errors.New(rule.Fail)}
		case rule.Fail != "":
			return errors.New(rule.Fail)
		}
		return nil
	}
}

// take finds the rule and counts its use.
func (s *Switches) take(rules func(Faults) []Rule, claim string) (*Rule, <-chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, rule := range rules(s.now) {
		if rule.Matches(claim) && (rule.Times == 0 || s.used[rule] < rule.Times) {
			s.used[rule]++
			return &rule, s.changed
		}
	}
	return nil, s.changed
}

// sleep returns false when the context ended first.
func sleep(ctx context.Context, how time.Duration) bool {
	if how <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(how)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
