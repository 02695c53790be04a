package wechatpay_test

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-pay/holdfast/gateway"
	"github.com/holdfast-pay/holdfast/gateway/wechatpay"
)

// The vectors in testdata were made with openssl for this project.
var (
	//go:embed testdata/merchant.key.pem
	ownMerchantKey []byte
	//go:embed testdata/gateway.pub.pem
	ownPublicKey []byte
	//go:embed testdata/gateway.cert.pem
	ownCertificate []byte
)

func vectorOptions() wechatpay.Options {
	return wechatpay.Options{
		MerchantID: "1900000001", AppID: "wx0000000000000001", MobileAppID: "wx0000000000000002",
		MerchantSerial: "3775B6A45ACD588826D15E583A95F5DD00000001", MerchantKey: ownMerchantKey,
		APIv3Key: "0123456789abcdef0123456789abcdef", PublicKeyID: "PUB_KEY_ID_0119000000012026010200000000000000",
		PublicKey: ownPublicKey, Certificates: [][]byte{ownCertificate}, NotifyURL: "https://shop.example/notify/wechat",
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestNotificationsAreJudgedAsTheVectorsSay(t *testing.T) {
	var v struct {
		Cases []struct {
			Name      string
			Headers   map[string]string
			Body      string
			Now       int64
			Accept    bool
			Plaintext string
		}
	}
	readJSON(t, "testdata/wechat_notify.json", &v)
	if len(v.Cases) != 20 {
		t.Fatalf("got %d cases, want 20", len(v.Cases))
	}
	g := newGateway(t, vectorOptions())
	for _, c := range v.Cases {
		header := http.Header{}
		for name, value := range c.Headers {
			header.Set(name, value)
		}
		n, err := g.Parse(header, []byte(c.Body), time.Unix(c.Now, 0))
		// What is the order's business is the caller's to check: HF1001 costs 9.90.
		accepted := err == nil && (n.Refund != "" || n.Payment == "HF1001" && n.Amount == 990)
		if accepted != c.Accept {
			t.Errorf("%s: got %+v, %v, want accepted %v", c.Name, n, err, c.Accept)
		}
		if c.Accept && n.Refund == "" && (n.Status != gateway.Paid || n.Currency != "CNY") {
			t.Errorf("%s: got %+v, want paid in CNY", c.Name, n)
		}
	}
}

func TestPublicVectorsAgree(t *testing.T) {
	folder := os.Getenv("HOLDFAST_VECTORS")
	if folder == "" {
		t.Skip("HOLDFAST_VECTORS names no folder")
	}
	var v struct {
		Headers     map[string]string
		Body        string
		Certificate string
	}
	readJSON(t, filepath.Join(folder, "wechatpay_go_notify.json"), &v)
	o := vectorOptions()
	o.Certificates = [][]byte{[]byte(v.Certificate)}
	header := http.Header{}
	for name, value := range v.Headers {
		header.Set(name, value)
	}
	g := newGateway(t, o)
	// It is of a kind that changes nothing here, so that only the signature counts.
	n, err := g.Parse(header, []byte(v.Body), time.Unix(1624523846, 0))
	if err != nil || !n.Ignored || n.Type != "PAYSCORE.USER_OPEN_SERVICE" {
		t.Errorf("got %+v, %v, want it ignored", n, err)
	}
	if n, err := g.Parse(header, []byte(v.Body+"\n"), time.Unix(1624523846, 0)); err == nil {
		t.Errorf("a line feed more: got %+v, want an error", n)
	}
}
