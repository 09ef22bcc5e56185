// Calls the admin client of pulsar-client-go at os.Args[1], in the tenant os.Args[2], and prints one line for each call.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/rest"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

var n int

func format(v any) string {
	if s, ok := v.([]string); ok {
		sort.Strings(s)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T %v", v, v)
	}
	return fmt.Sprintf("%T %s", v, b)
}

func report(name string, v any, err error) {
	n++
	if err != nil {
		if e, ok := err.(rest.Error); ok {
			reason := e.Reason
			if i := strings.Index(reason, "\n\nStacktrace"); i > 0 {
				reason = reason[:i]
			}
			fmt.Printf("> %03d %s: error %d %q\n", n, name, e.Code, reason)
			return
		}
		fmt.Printf("> %03d %s: %T %q\n", n, name, err, err.Error())
		return
	}
	fmt.Printf("> %03d %s: %s\n", n, name, format(v))
}

func reportOnceSet(name string, expected any, call func() (any, error)) {
	var v any
	var err error
	for i := 0; i < 40; i++ {
		v, err = call()
		if err == nil && reflect.DeepEqual(v, expected) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	report(name, v, err)
}

func main() {
	c, err := admin.New(&config.Config{WebServiceURL: os.Args[1]})
	if err != nil {
		panic(err)
	}
	tenant := os.Args[2]
	ns := tenant + "/ns"
	nsn, _ := utils.GetNamespaceName(ns)
	top := "persistent://" + ns + "/orders"
	tn, _ := utils.GetTopicName(top)
	run := func(name string, err error) { report(name, "ok", err) }

	cl, err := c.Clusters().List()
	report("clusters", cl, err)
	v, err := c.Brokers().GetRuntimeConfigurations()
	report("runtime strategy", v["schemaCompatibilityStrategy"], err)
	run("health", c.Brokers().HealthCheck())
	lb, err := c.Brokers().GetLeaderBroker()
	report("leader", lb.BrokerID != "", err)
	ab, err := c.Brokers().GetActiveBrokers("standalone")
	report("active brokers", len(ab), err)

	run("tenant create", c.Tenants().Create(utils.TenantData{Name: tenant, AllowedClusters: []string{"standalone"}}))
	run("tenant create again", c.Tenants().Create(utils.TenantData{Name: tenant, AllowedClusters: []string{"standalone"}}))
	run("tenant create no clusters", c.Tenants().Create(utils.TenantData{Name: tenant + "y"}))
	td, err := c.Tenants().Get(tenant)
	report("tenant get", td, err)
	td, err = c.Tenants().Get(tenant + "x")
	report("tenant get missing", td, err)
	run("tenant update", c.Tenants().Update(utils.TenantData{Name: tenant, AdminRoles: []string{"a"}, AllowedClusters: []string{"standalone"}}))
	run("ns create", c.Namespaces().CreateNamespace(ns))
	run("ns create again", c.Namespaces().CreateNamespace(ns))
	run("ns with bundles", c.Namespaces().CreateNsWithNumBundles(tenant+"/bundled", 8))
	p := utils.NewDefaultPolicies()
	p.SchemaCompatibilityStrategy = utils.SchemaCompatibilityStrategyForward
	p.RetentionPolicies = &utils.RetentionPolicies{RetentionTimeInMinutes: 5, RetentionSizeInMB: 6}
	run("ns with policies", c.Namespaces().CreateNsWithPolices(tenant+"/politic", *p))
	sp, err := c.Namespaces().GetPolicies(tenant + "/politic")
	if err == nil {
		report("ns with policies got", []any{sp.SchemaCompatibilityStrategy, sp.RetentionPolicies}, err)
	} else {
		report("ns with policies got", nil, err)
	}
	l, err := c.Namespaces().GetNamespaces(tenant)
	report("ns list", l, err)
	pol, err := c.Namespaces().GetPolicies(ns)
	report("ns policies", pol, err)
	st, err := c.Namespaces().GetSchemaCompatibilityStrategy(*nsn)
	report("ns strategy", st, err)
	for _, s := range []utils.SchemaCompatibilityStrategy{utils.SchemaCompatibilityStrategyFull, utils.SchemaCompatibilityStrategyBackwardTransitive, utils.SchemaCompatibilityStrategyAlwaysCompatible, utils.SchemaCompatibilityStrategyUndefined, utils.SchemaCompatibilityStrategyBackward} {
		run("ns strategy set", c.Namespaces().SetSchemaCompatibilityStrategy(*nsn, s))
		st, err = c.Namespaces().GetSchemaCompatibilityStrategy(*nsn)
		report("ns strategy got", st, err)
	}
	au, err := c.Namespaces().GetSchemaAutoUpdateCompatibilityStrategy(*nsn)
	report("ns auto strategy", au, err)
	run("ns auto strategy set", c.Namespaces().SetSchemaAutoUpdateCompatibilityStrategy(*nsn, utils.Full))
	au, err = c.Namespaces().GetSchemaAutoUpdateCompatibilityStrategy(*nsn)
	report("ns auto strategy got", au, err)
	run("ns enforced set", c.Namespaces().SetSchemaValidationEnforced(*nsn, true))
	e, err := c.Namespaces().GetSchemaValidationEnforced(*nsn)
	report("ns enforced got", e, err)
	run("ns allow set", c.Namespaces().SetIsAllowAutoUpdateSchema(*nsn, true))
	e, err = c.Namespaces().GetIsAllowAutoUpdateSchema(*nsn)
	report("ns allow got", e, err)
	ttl, err := c.Namespaces().GetNamespaceMessageTTL(ns)
	report("ns ttl none", ttl, err)
	run("ns ttl set", c.Namespaces().SetNamespaceMessageTTL(ns, 60))
	ttl, err = c.Namespaces().GetNamespaceMessageTTL(ns)
	report("ns ttl got", ttl, err)
	ret, err := c.Namespaces().GetRetention(ns)
	report("ns retention none", ret, err)
	run("ns retention set", c.Namespaces().SetRetention(ns, utils.RetentionPolicies{RetentionTimeInMinutes: 10, RetentionSizeInMB: 20}))
	ret, err = c.Namespaces().GetRetention(ns)
	report("ns retention got", ret, err)
	ct, err := c.Namespaces().GetCompactionThreshold(*nsn)
	report("ns compaction none", ct, err)
	run("ns dedup set", c.Namespaces().SetDeduplicationStatus(ns, true))
	rc, err := c.Namespaces().GetNamespaceReplicationClusters(ns)
	report("ns clusters", rc, err)
	pm, err := c.Namespaces().GetNamespacePermissions(*nsn)
	report("ns permissions", pm, err)

	run("topic create", c.Topics().Create(*tn, 0))
	run("topic create again", c.Topics().Create(*tn, 0))
	parts, _ := utils.GetTopicName("persistent://" + ns + "/parts")
	run("partitioned create", c.Topics().Create(*parts, 3))
	parts2, _ := utils.GetTopicName("persistent://" + ns + "/parts2")
	run("partitioned create with properties", c.Topics().CreateWithProperties(*parts2, 2, map[string]string{"k": "v"}))
	single2, _ := utils.GetTopicName("persistent://" + ns + "/single2")
	run("single create with properties", c.Topics().CreateWithProperties(*single2, 0, map[string]string{"k": "v"}))
	pr, err := c.Topics().GetProperties(*single2)
	report("properties", pr, err)
	spaced, _ := utils.GetTopicName("persistent://" + ns + "/a b")
	run("topic with space", c.Topics().Create(*spaced, 0))
	plussed, _ := utils.GetTopicName("persistent://" + ns + "/c+d")
	run("topic with plus", c.Topics().Create(*plussed, 0))
	md, err := c.Topics().GetMetadata(*parts)
	report("metadata", md, err)
	run("partitioned grow", c.Topics().Update(*parts, 4))
	np, nnp, err := c.Topics().List(*nsn)
	sort.Strings(np)
	sort.Strings(nnp)
	report("topics list", []any{np, nnp}, err)
	nt, err := c.Namespaces().GetTopics(ns)
	report("ns topics", nt, err)

	gs, err := c.Topics().GetSchemaCompatibilityStrategy(*tn)
	report("topic strategy none", gs, err)
	run("topic strategy set", c.Topics().SetSchemaCompatibilityStrategy(*tn, utils.SchemaCompatibilityStrategyBackward))
	reportOnceSet("topic strategy got", utils.SchemaCompatibilityStrategyBackward, func() (any, error) { return c.Topics().GetSchemaCompatibilityStrategy(*tn) })
	gs, err = c.Topics().GetSchemaCompatibilityStrategyApplied(*tn, true)
	report("topic strategy applied", gs, err)
	run("topic strategy remove", c.Topics().RemoveSchemaCompatibilityStrategy(*tn))
	reportOnceSet("topic strategy gone", utils.SchemaCompatibilityStrategy(""), func() (any, error) { return c.Topics().GetSchemaCompatibilityStrategy(*tn) })
	run("topic enforced set", c.Topics().SetSchemaValidationEnforced(*tn, true))
	reportOnceSet("topic enforced got", true, func() (any, error) { return c.Topics().GetSchemaValidationEnforced(*tn) })
	run("topic enforced remove", c.Topics().RemoveSchemaValidationEnforced(*tn))
	reportOnceSet("topic enforced gone", false, func() (any, error) { return c.Topics().GetSchemaValidationEnforced(*tn) })
	run("topic retention set", c.Topics().SetRetention(*tn, utils.RetentionPolicies{RetentionTimeInMinutes: 1, RetentionSizeInMB: 2}))
	reportOnceSet("topic retention got", &utils.RetentionPolicies{RetentionTimeInMinutes: 1, RetentionSizeInMB: 2}, func() (any, error) { return c.Topics().GetRetention(*tn, false) })
	run("topic ttl set", c.Topics().SetMessageTTL(*tn, 9))
	reportOnceSet("topic ttl got", 9, func() (any, error) { return c.Topics().GetMessageTTL(*tn) })
	run("topic dedup set", c.Topics().SetDeduplicationStatus(*tn, true))
	reportOnceSet("topic dedup got", true, func() (any, error) { return c.Topics().GetDeduplicationStatus(*tn) })
	run("topic compaction set", c.Topics().SetCompactionThreshold(*tn, 77))
	reportOnceSet("topic compaction got", int64(77), func() (any, error) { return c.Topics().GetCompactionThreshold(*tn, false) })
	run("ns strategy for schemas", c.Namespaces().SetSchemaCompatibilityStrategy(*nsn, utils.SchemaCompatibilityStrategyBackward))

	s := c.Schemas()
	a := `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`
	b := `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"string","default":""}]}`
	x := `{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}`
	pl := func(t, text string) utils.PostSchemaPayload {
		return utils.PostSchemaPayload{SchemaType: t, Schema: text, Properties: map[string]string{"o": "p"}}
	}
	strip := func(i *utils.SchemaInfo, err error) (any, error) {
		if i != nil {
			i.Timestamp = 0
		}
		return i, err
	}
	got := func(name string, i *utils.SchemaInfo, err error) { v, err := strip(i, err); report(name, v, err) }
	all := func(name string) {
		l, err := s.GetAllSchemas(top)
		for _, version := range l {
			version.SchemaInfo.Timestamp = 0
		}
		report(name, l, err)
	}
	i, err := s.GetSchemaInfo(top)
	got("schema none", i, err)
	all("schema none all")
	run("schema a", s.CreateSchemaByPayload(top, pl("AVRO", a)))
	run("schema b", s.CreateSchemaBySchemaInfo(top, utils.SchemaInfo{Name: "orders", Type: "AVRO", Schema: []byte(b), Properties: map[string]string{}}))
	run("schema x", s.CreateSchemaByPayload(top, pl("AVRO", x)))
	run("schema broken", s.CreateSchemaByPayload(top, pl("AVRO", "{")))
	run("schema nil properties", s.CreateSchemaByPayload(top, utils.PostSchemaPayload{SchemaType: "AVRO", Schema: a}))
	i, err = s.GetSchemaInfo(top)
	got("schema got", i, err)
	w, err := s.GetSchemaInfoWithVersion(top)
	if w != nil {
		w.SchemaInfo.Timestamp = 0
	}
	report("schema with version", w, err)
	i, err = s.GetSchemaInfoByVersion(top, 0)
	got("schema by version 0", i, err)
	i, err = s.GetSchemaInfoByVersion(top, 9)
	got("schema by version 9", i, err)
	all("schema all")
	ver, err := s.GetVersionByPayload(top, pl("AVRO", b))
	report("version of b", ver, err)
	ver, err = s.GetVersionByPayload(top, pl("AVRO", x))
	report("version of x", ver, err)
	cp, err := s.TestCompatibilityWithPostSchemaPayload(top, pl("AVRO", b))
	report("compatible b", cp, err)
	cp, err = s.TestCompatibilityWithPostSchemaPayload(top, pl("AVRO", x))
	report("compatible x", cp, err)
	for _, name := range []string{"/a b", "/c+d"} {
		at := "persistent://" + ns + name
		run("schema at"+name, s.CreateSchemaByPayload(at, pl("AVRO", a)))
		i, err = s.GetSchemaInfo(at)
		got("schema at"+name+" got", i, err)
	}
	kv := `{"key":"","value":{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}}`
	run("key value", s.CreateSchemaByPayload("persistent://"+ns+"/kv", utils.PostSchemaPayload{SchemaType: "KEY_VALUE", Schema: kv, Properties: map[string]string{"key.schema.name": "k", "key.schema.type": "STRING", "key.schema.properties": "{}", "value.schema.name": "v", "value.schema.type": "AVRO", "value.schema.properties": "{}", "kv.encoding.type": "INLINE"}}))
	i, err = s.GetSchemaInfo("persistent://" + ns + "/kv")
	got("key value got", i, err)
	run("schema delete", s.DeleteSchema(top))
	i, err = s.GetSchemaInfo(top)
	got("schema deleted", i, err)
	run("schema again", s.CreateSchemaByPayload(top, pl("STRING", "")))
	w, err = s.GetSchemaInfoWithVersion(top)
	if w != nil {
		w.SchemaInfo.Timestamp = 0
	}
	report("schema again got", w, err)
	run("schema force delete", s.ForceDeleteSchema(top))
	i, err = s.GetSchemaInfo(top)
	got("schema force deleted", i, err)
	sts, err := c.Topics().GetStats(*tn)
	report("stats", sts.StorageSize, err)

	run("topic delete", c.Topics().Delete(*tn, false, true))
	run("topic delete again", c.Topics().Delete(*tn, false, true))
	run("partitioned delete as single", c.Topics().Delete(*parts, false, true))
	run("partitioned delete", c.Topics().Delete(*parts, false, false))
	run("partitioned2 delete", c.Topics().Delete(*parts2, false, false))
	run("spaced delete", c.Topics().Delete(*spaced, false, true))
	run("plussed delete", c.Topics().Delete(*plussed, false, true))
	run("ns delete not empty", c.Namespaces().DeleteNamespace(ns))
	run("single2 delete", c.Topics().Delete(*single2, true, true))
	run("ns delete", c.Namespaces().DeleteNamespace(ns))
	run("ns delete again", c.Namespaces().DeleteNamespace(ns))
	run("ns delete", c.Namespaces().DeleteNamespace(tenant+"/bundled"))
	run("ns delete", c.Namespaces().DeleteNamespace(tenant+"/politic"))
	run("tenant delete", c.Tenants().Delete(tenant))
}
