// The oracle: upstream's own allocator and CEL, asked about object sets that nobody has to load.
//
// One JSON document on standard input, one JSON answer a line on standard output:
//
//	{"features": ["DRADeviceTaints", …],
//	 "objects": [DeviceClass, ResourceSlice, ResourceClaim, Node, DeviceTaintRule, …],
//	 "questions": [{"id": "1", "node": "n1", "claims": [ResourceClaim, …], "seconds": 10},
//	               {"id": "2", "expression": "device.driver == …", "driver": "…", "device": {…}},
//	               {"id": "3", "nodes": ["n1", "n2", …], "claims": [ResourceClaim, …]}]}
//
//	{"id": "1", "verdict": "OK", "devices": [[{"request": "r", "driver": …, "pool": …, "device": …}]]}
//	{"id": "2", "verdict": "true", "cost": 12, "maxCost": 40, "refused": ""}
//	{"id": "3", "verdict": "OK", "fits": 2, "nanoseconds": 1200000}
//
// A verdict for claims is OK, NO, NODE_ERROR, FATAL or TIMEOUT; for an expression true, false,
// runtime-error or compile-error, and "refused" says why the API server would not take it anew. A
// question with several nodes is asked as the scheduler asks for one Pod: one allocator, one node
// after the other; the answer counts the nodes that fit and the time it took, without reading.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

func init() { parts["oracle"] = oracle }

type question struct {
	ID         string                       `json:"id"`
	Node       string                       `json:"node"`
	Nodes      []string                     `json:"nodes"`
	Claims     []*resourceapi.ResourceClaim `json:"claims"`
	Seconds    float64                      `json:"seconds"`
	Expression string                       `json:"expression"`
	Driver     string                       `json:"driver"`
	Device     *resourceapi.Device          `json:"device"`
}

type chosen struct {
	Request  string            `json:"request"`
	Driver   string            `json:"driver"`
	Pool     string            `json:"pool"`
	Device   string            `json:"device"`
	Admin    bool              `json:"admin,omitempty"`
	Consumed map[string]string `json:"consumed,omitempty"`
}

type answer struct {
	ID      string     `json:"id"`
	Verdict string     `json:"verdict"`
	Devices [][]chosen `json:"devices,omitempty"`
	Text    string     `json:"text,omitempty"`
	Cost    uint64     `json:"cost,omitempty"`
	MaxCost uint64     `json:"maxCost,omitempty"`
	Refused string     `json:"refused,omitempty"`
	Fits    int        `json:"fits,omitempty"`
	Nanos   int64      `json:"nanoseconds,omitempty"`
}

type objectSet struct {
	slices  []*resourceapi.ResourceSlice
	classes classes
	nodes   map[string]*v1.Node
	claims  []*resourceapi.ResourceClaim
	rules   []taintRule
}

// taintRule is what the releases' types of DeviceTaintRule have in common.
type taintRule struct {
	Spec struct {
		DeviceSelector *struct {
			Driver *string `json:"driver"`
			Pool   *string `json:"pool"`
			Device *string `json:"device"`
		} `json:"deviceSelector"`
		Taint resourceapi.DeviceTaint `json:"taint"`
	} `json:"spec"`
}

type classes map[string]*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return nil, errors.New("not needed") }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if found, ok := c[name]; ok {
		return found, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}, name)
}

func oracle([]string) int {
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func answerAll(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		var input struct {
			Features  []string          `json:"features"`
			Objects   []json.RawMessage `json:"objects"`
			Questions []question        `json:"questions"`
		}
		if err := decoder.Decode(&input); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading questions: %w", err)
		}
		set, err := read(input.Objects)
		if err != nil {
			return err
		}
		on := sets.New(input.Features...)
		set.taint(on)
		cache := cel.NewCache(1000, celFeatures(on))
		for _, q := range input.Questions {
			var reply answer
			switch {
			case q.Expression != "":
				reply = evaluate(q, on)
			case len(q.Nodes) > 0:
				reply = set.allocateOnEach(q, on, cache)
			default:
				reply = set.allocate(q, on, cache)
			}
			if err := encoder.Encode(reply); err != nil {
				return err
			}
		}
	}
}

func read(objects []json.RawMessage) (*objectSet, error) {
	set := &objectSet{classes: classes{}, nodes: map[string]*v1.Node{}}
	for _, raw := range objects {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return nil, err
		}
		var err error
		switch head.Kind {
		case "ResourceSlice":
			set.slices, err = add(set.slices, raw)
		case "ResourceClaim":
			set.claims, err = add(set.claims, raw)
		case "DeviceTaintRule":
			var rule taintRule
			err = json.Unmarshal(raw, &rule)
			set.rules = append(set.rules, rule)
		case "DeviceClass":
			var class resourceapi.DeviceClass
			err = json.Unmarshal(raw, &class)
			set.classes[class.Name] = &class
		case "Node":
			var node v1.Node
			err = json.Unmarshal(raw, &node)
			set.nodes[node.Name] = &node
		}
		if err != nil {
			return nil, fmt.Errorf("reading a %s: %w", head.Kind, err)
		}
	}
	slices.SortFunc(set.slices, func(a, b *resourceapi.ResourceSlice) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return set, nil
}

func add[T any](list []*T, raw json.RawMessage) ([]*T, error) {
	item := new(T)
	err := json.Unmarshal(raw, item)
	return append(list, item), err
}

// taint puts the taints of rules on devices, as upstream's resourceslice/tracker does.
func (set *objectSet) taint(on sets.Set[string]) {
	if !on.Has("DRADeviceTaints") || !on.Has("DRADeviceTaintRules") {
		return
	}
	for _, slice := range set.slices {
		for i := range slice.Spec.Devices {
			for _, rule := range set.rules {
				if s := rule.Spec.DeviceSelector; s == nil {
					if !ruleWithoutSelectorTaintsAll {
						continue
					}
				} else if s.Driver != nil && *s.Driver != slice.Spec.Driver ||
					s.Pool != nil && *s.Pool != slice.Spec.Pool.Name ||
					s.Device != nil && *s.Device != slice.Spec.Devices[i].Name {
					continue
				}
				slice.Spec.Devices[i].Taints = append(slice.Spec.Devices[i].Taints, rule.Spec.Taint)
			}
		}
	}
}

// inUse tells the allocator what allocated claims hold, as the scheduler plugin does.
func (set *objectSet) inUse(on sets.Set[string]) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range set.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil || !on.Has("DRAConsumableCapacity") {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}

func (set *objectSet) allocate(q question, on sets.Set[string], cache *cel.Cache) answer {
	node, found := set.nodes[q.Node]
	if !found {
		node = &v1.Node{}
		node.Name = q.Node
	}
	seconds := q.Seconds
	if seconds == 0 {
		seconds = 10
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, allocatorFeatures(on), set.inUse(on), set.classes, set.slices, cache)
	if err != nil {
		return answer{ID: q.ID, Verdict: "FATAL", Text: err.Error()}
	}
	results, err := allocator.Allocate(ctx, node, q.Claims)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return answer{ID: q.ID, Verdict: "TIMEOUT", Text: err.Error()}
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return answer{ID: q.ID, Verdict: "NODE_ERROR", Text: err.Error()}
	case err != nil:
		return answer{ID: q.ID, Verdict: "FATAL", Text: err.Error()}
	case len(results) != len(q.Claims):
		return answer{ID: q.ID, Verdict: "NO"}
	}
	reply := answer{ID: q.ID, Verdict: "OK"}
	for _, result := range results {
		devices := []chosen{}
		for _, r := range result.Devices.Results {
			one := chosen{Request: r.Request, Driver: r.Driver, Pool: r.Pool, Device: r.Device}
			one.Admin = r.AdminAccess != nil && *r.AdminAccess
			for name, amount := range r.ConsumedCapacity {
				if one.Consumed == nil {
					one.Consumed = map[string]string{}
				}
				one.Consumed[string(name)] = amount.String()
			}
			devices = append(devices, one)
		}
		reply.Devices = append(reply.Devices, devices)
	}
	return reply
}

// allocateOnEach asks one allocator about every node, as the scheduler does for one Pod.
func (set *objectSet) allocateOnEach(q question, on sets.Set[string], cache *cel.Cache) answer {
	ctx := context.Background()
	inUse := set.inUse(on)
	reply := answer{ID: q.ID, Verdict: "NO"}
	began := time.Now()
	allocator, err := structured.NewAllocator(ctx, allocatorFeatures(on), inUse, set.classes, set.slices, cache)
	if err != nil {
		return answer{ID: q.ID, Verdict: "FATAL", Text: err.Error()}
	}
	for _, name := range q.Nodes {
		node := set.nodes[name]
		if node == nil {
			node = &v1.Node{}
			node.Name = name
		}
		results, err := allocator.Allocate(ctx, node, q.Claims)
		if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
			return answer{ID: q.ID, Verdict: "FATAL", Text: err.Error()}
		}
		if err == nil && len(results) == len(q.Claims) {
			reply.Verdict = "OK"
			reply.Fits++
		}
	}
	reply.Nanos = time.Since(began).Nanoseconds()
	return reply
}

func celFeatures(on sets.Set[string]) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: on.Has("DRAConsumableCapacity"),
		EnableListTypeAttributes: on.Has("DRAListTypeAttributes"),
	}
}

func evaluate(q question, on sets.Set[string]) answer {
	reply := answer{ID: q.ID}
	compiler := cel.GetCompiler(celFeatures(on))
	fresh := environment.NewExpressions
	asNew := compiler.CompileCELExpression(q.Expression, cel.Options{EnvType: &fresh})
	switch {
	case asNew.Error != nil:
		reply.Refused = asNew.Error.Error()
	case asNew.MaxCost > resourceapi.CELSelectorExpressionMaxCost:
		reply.Refused = "too complex, exceeds cost limit"
	}
	reply.MaxCost = asNew.MaxCost
	compiled := compiler.CompileCELExpression(q.Expression, cel.Options{})
	if compiled.Error != nil {
		reply.Verdict, reply.Text = "compile-error", compiled.Error.Error()
		return reply
	}
	matches, details, err := compiled.DeviceMatches(context.Background(), cel.Device{
		Driver:                   q.Driver,
		AllowMultipleAllocations: q.Device.AllowMultipleAllocations,
		Attributes:               q.Device.Attributes,
		Capacity:                 q.Device.Capacity,
	})
	if details != nil && details.ActualCost() != nil {
		reply.Cost = *details.ActualCost()
	}
	switch {
	case err != nil:
		reply.Verdict, reply.Text = "runtime-error", err.Error()
	case matches:
		reply.Verdict = "true"
	default:
		reply.Verdict = "false"
	}
	return reply
}
