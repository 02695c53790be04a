package wechatpaysim

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

const (
	maxOrderLife = 7 * 24 * time.Hour // of an order without time_expire, and of any
	minOrderLife = time.Minute
	codeLife     = 2 * time.Hour // of code_url and prepay_id
	h5Life       = 5 * time.Minute
	closeableAge = 5 * time.Minute // with CloseTooEarly
	maxFen       = 1<<53 - 1
)

// States of an order, as trade_state says them.
const (
	notPaid = "NOTPAY"
	success = "SUCCESS"
	closed  = "CLOSED"
)

// order is one payment.
type order struct {
	number      string // out_trade_no
	trade       string // trade_type
	fingerprint string // what a repeated create must be equal to
	asked       orderBody
	created     time.Time
	expires     time.Time
	state       string // notPaid, success, closed
	declined    bool   // the last try to pay failed

	prepayID string
	code     string // pr= of the code_url
	renewed  time.Time

	transaction string // transaction_id, when paid
	paidAt      time.Time
	coupon      int64 // fen of the price that a coupon paid
	refunds     []*refund
}

// orderBody is the published body of a create call, as far as fields exist for
// merchants; those without an effect here are checked for their type alone.
type orderBody struct {
	AppID         string          `json:"appid"`
	MchID         string          `json:"mchid"`
	Description   string          `json:"description"`
	OutTradeNo    string          `json:"out_trade_no"`
	TimeExpire    string          `json:"time_expire,omitempty"`
	Attach        string          `json:"attach,omitempty"`
	NotifyURL     string          `json:"notify_url"`
	GoodsTag      string          `json:"goods_tag,omitempty"`
	LimitPay      []string        `json:"limit_pay,omitempty"`
	SupportFapiao bool            `json:"support_fapiao,omitempty"`
	Detail        json.RawMessage `json:"detail,omitempty"`
	SettleInfo    json.RawMessage `json:"settle_info,omitempty"`
	Amount        struct {
		Total    *int64 `json:"total"`
		Currency string `json:"currency,omitempty"`
	} `json:"amount"`
	Payer *struct {
		OpenID string `json:"openid"`
	} `json:"payer,omitempty"`
	SceneInfo *struct {
		PayerClientIP string          `json:"payer_client_ip"`
		DeviceID      string          `json:"device_id,omitempty"`
		StoreInfo     json.RawMessage `json:"store_info,omitempty"`
		H5Info        *struct {
			Type        string `json:"type"`
			AppName     string `json:"app_name,omitempty"`
			AppURL      string `json:"app_url,omitempty"`
			BundleID    string `json:"bundle_id,omitempty"`
			PackageName string `json:"package_name,omitempty"`
		} `json:"h5_info,omitempty"`
	} `json:"scene_info,omitempty"`
}

var numberForm = regexp.MustCompile(`^[0-9A-Za-z_\-|*]{6,32}$`)

func (b *orderBody) check(trade string) *apiError {
	switch {
	case b.MchID != MerchantID:
		return refused(http.StatusBadRequest, "MCH_NOT_EXISTS", "商户号不存在")
	case b.AppID != AppID && b.AppID != MobileAppID:
		return refused(http.StatusBadRequest, "APPID_MCHID_NOT_MATCH", "appid和mch_id不匹配")
	case b.Description == "" || len(b.Description) > 127:
		return invalid("/description", "商品描述必填，最长127字节")
	case !numberForm.MatchString(b.OutTradeNo):
		return invalid("/out_trade_no", "商户订单号为6至32个数字、字母或_-|*")
	case len(b.Attach) > 128:
		return invalid("/attach", "商户数据包最长128字节")
	case !notifiable(b.NotifyURL):
		return invalid("/notify_url", "通知地址须为不带参数的https地址")
	case b.Amount.Total == nil || *b.Amount.Total < 1 || *b.Amount.Total > maxFen:
		return invalid("/amount/total", "总金额为不小于1的整数，单位为分")
	case b.Amount.Currency != "" && b.Amount.Currency != "CNY":
		return invalid("/amount/currency", "货币类型只支持CNY")
	}
	return b.checkTrade(trade)
}

func (b *orderBody) checkTrade(trade string) *apiError {
	if trade == "JSAPI" {
		if b.Payer == nil || b.Payer.OpenID == "" || len(b.Payer.OpenID) > 128 {
			return invalid("/payer/openid", "JSAPI下单必须传入openid")
		}
		return nil
	}
	if b.Payer != nil {
		return invalid("/payer", "该支付方式不支持payer")
	}
	if trade == "MWEB" && (b.SceneInfo == nil || b.SceneInfo.H5Info == nil || b.SceneInfo.H5Info.Type == "") {
		return invalid("/scene_info/h5_info", "H5下单必须传入场景信息")
	}
	if b.SceneInfo != nil && net.ParseIP(b.SceneInfo.PayerClientIP) == nil {
		return invalid("/scene_info/payer_client_ip", "用户终端IP错误")
	}
	return nil
}

// notifiable: a real notify_url is https. This machine may do without.
func notifiable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.RawQuery != "" || len(address) > 255 {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// prepay makes the handler of the create calls of one trade type.
func prepay(trade string) func(*Sim, *call) (any, *apiError) {
	return func(s *Sim, c *call) (any, *apiError) {
		var b orderBody
		if fail := readBody(c.body, &b); fail != nil {
			return nil, fail
		}
		if fail := b.check(trade); fail != nil {
			return nil, fail
		}
		o, fail := s.order(c, b, trade)
		if fail != nil {
			return nil, fail
		}
		return s.payable(o, c), nil
	}
}

// order finds the order of that number, or books it.
func (s *Sim) order(c *call, b orderBody, trade string) (*order, *apiError) {
	fingerprint := trade + " " + string(encode(b))
	if o := s.orders[b.OutTradeNo]; o != nil {
		switch {
		case o.fingerprint != fingerprint:
			return nil, &apiError{http.StatusForbidden, "OUT_TRADE_NO_USED", "商户订单号重复", detailOtherOrder, ""}
		case o.state == success:
			return nil, &apiError{http.StatusBadRequest, "ORDER_PAID", "该订单已支付", detailPaid, ""}
		case o.state == closed:
			return nil, refused(http.StatusBadRequest, "ORDER_CLOSED", "订单已关闭")
		case !c.now.Before(o.expires):
			return nil, invalid("/time_expire", "订单已过支付结束时间")
		}
		return o, nil
	}
	expires := c.now.Add(maxOrderLife)
	if b.TimeExpire != "" {
		at, err := time.Parse(time.RFC3339, b.TimeExpire)
		if err != nil {
			return nil, invalid("/time_expire", "支付结束时间须为rfc3339格式")
		}
		if at.Before(c.now.Add(minOrderLife)) || at.After(expires) {
			return nil, invalid("/time_expire", "支付结束时间须在1分钟之后、7天之内")
		}
		expires = at
	}
	o := &order{number: b.OutTradeNo, trade: trade, fingerprint: fingerprint, asked: b, created: c.now, expires: expires, state: notPaid}
	s.orders[o.number] = o
	s.booked = append(s.booked, o)
	return o, nil
}

// payable is what the buyer pays with, made anew when the last has run out.
func (s *Sim) payable(o *order, c *call) object {
	if o.prepayID == "" || c.now.Sub(o.renewed) >= o.codeLife() {
		o.prepayID = "wx" + c.now.In(beijing).Format("20060102150405") + s.id(20, digits+"abcdef")
		o.code, o.renewed = s.id(9, letters), c.now
	}
	switch o.trade {
	case "NATIVE":
		return object{"code_url": "weixin://wxpay/bizpayurl?pr=" + o.code}
	case "MWEB":
		return object{"h5_url": c.base + "/cgi-bin/mmpayweb-bin/checkmweb?prepay_id=" + o.prepayID + "&package=" + o.code}
	}
	return object{"prepay_id": o.prepayID}
}

func (o *order) codeLife() time.Duration {
	if o.trade == "MWEB" {
		return h5Life
	}
	return codeLife
}

func (s *Sim) queryOrder(c *call) (any, *apiError) {
	return s.showOrder(c, s.orders[c.id])
}

func (s *Sim) findOrder(c *call) (any, *apiError) {
	for _, o := range s.booked {
		if o.transaction == c.id {
			return s.showOrder(c, o)
		}
	}
	return s.showOrder(c, nil)
}

func (s *Sim) showOrder(c *call, o *order) (any, *apiError) {
	if c.query["mchid"] != MerchantID {
		return nil, invalid("/mchid", "商户号不匹配")
	}
	if o == nil {
		return nil, refused(http.StatusNotFound, "ORDER_NOT_EXIST", "订单不存在")
	}
	shown := o.object()
	if o.state == notPaid && c.plan.paying {
		shown["trade_state"], shown["trade_state_desc"] = "USERPAYING", "用户支付中"
	}
	return shown, nil
}

// object is the order as a query or a notification tells it.
func (o *order) object() object {
	out := object{
		"appid": o.asked.AppID, "mchid": o.asked.MchID, "out_trade_no": o.number, "attach": o.asked.Attach,
		"trade_state": o.tradeState(), "trade_state_desc": describe[o.tradeState()], "promotion_detail": []object{},
		"amount": object{"total": o.total(), "currency": "CNY"},
	}
	if o.state != success {
		return out
	}
	out["trade_type"], out["transaction_id"], out["bank_type"] = o.trade, o.transaction, "OTHERS"
	out["success_time"], out["payer"] = stamp(o.paidAt), object{"openid": o.openID()}
	out["amount"] = object{"total": o.total(), "payer_total": o.total() - o.coupon, "currency": "CNY", "payer_currency": "CNY"}
	if o.coupon > 0 {
		out["promotion_detail"] = []object{{
			"coupon_id": "109519", "scope": "GLOBAL", "type": "CASH", "amount": o.coupon, "wechatpay_contribute": o.coupon,
			"merchant_contribute": 0, "other_contribute": 0, "currency": "CNY",
		}}
	}
	return out
}

var describe = map[string]string{notPaid: "订单未支付", success: "支付成功", closed: "订单已关闭", "REFUND": "订单发生过退款"}

// tradeState is REFUND from the first refund on that was not given up.
func (o *order) tradeState() string {
	for _, r := range o.refunds {
		if r.status != refundClosed {
			return "REFUND"
		}
	}
	return o.state
}

func (o *order) total() int64 { return *o.asked.Amount.Total }

func (o *order) openID() string {
	if o.asked.Payer != nil {
		return o.asked.Payer.OpenID
	}
	return "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"
}

func (s *Sim) closeOrder(c *call) (any, *apiError) {
	var b struct {
		MchID string `json:"mchid"`
	}
	if fail := readBody(c.body, &b); fail != nil {
		return nil, fail
	}
	if b.MchID != MerchantID {
		return nil, invalid("/mchid", "商户号不匹配")
	}
	o := s.orders[c.id]
	if o == nil {
		return nil, refused(http.StatusNotFound, "ORDER_NOT_EXIST", "订单不存在")
	}
	if c.plan.paid {
		// The buyer may be too late: then nothing happens.
		_ = s.pay(o, c.now)
	}
	switch {
	case o.state == success:
		return nil, &apiError{http.StatusBadRequest, "ORDER_PAID", "该订单已支付", detailPaid, ""}
	case o.state == closed && c.plan.old:
		return nil, refused(http.StatusBadRequest, "ORDER_CLOSED", "订单已关闭")
	case c.plan.paying && o.state == notPaid:
		return nil, refused(http.StatusAccepted, "USERPAYING", "用户支付中，需要输入密码")
	case c.plan.early && c.now.Sub(o.created) < closeableAge:
		return nil, refused(http.StatusForbidden, "RULE_LIMIT", "订单生成后5分钟内不能关闭")
	}
	o.state = closed
	return nil, nil
}
