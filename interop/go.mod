module github.com/holdfast-pay/holdfast/interop

go 1.26.0

require (
	github.com/go-pay/gopay v1.5.123
	github.com/holdfast-pay/holdfast v0.0.0
	github.com/smartwalle/alipay/v3 v3.2.30
	github.com/stripe/stripe-go/v86 v86.1.1
	github.com/stripe/stripe-mock v0.203.0
	github.com/wechatpay-apiv3/wechatpay-go v0.2.21
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/go-pay/crypto v0.0.3 // indirect
	github.com/go-pay/errgroup v0.0.3 // indirect
	github.com/go-pay/smap v0.0.2 // indirect
	github.com/go-pay/util v0.0.4 // indirect
	github.com/go-pay/xlog v0.0.3 // indirect
	github.com/go-pay/xtime v0.0.2 // indirect
	github.com/lestrrat-go/jspointer v0.0.0-20181205001929-82fadba7561c // indirect
	github.com/lestrrat-go/jsref v0.0.0-20181205001954-1b590508f37d // indirect
	github.com/lestrrat-go/jsschema v0.0.0-20181205002244-5c81c58ffcc3 // indirect
	github.com/lestrrat-go/jsval v0.0.0-20181205002323-20277e9befc0 // indirect
	github.com/lestrrat-go/pdebug v0.0.0-20180220043849-39f9a71bcabe // indirect
	github.com/lestrrat-go/structinfo v0.0.0-20190212233437-acd51874663b // indirect
	github.com/pkg/errors v0.8.1-0.20170505043639-c605e284fe17 // indirect
	github.com/smartwalle/ncrypto v1.0.4 // indirect
	github.com/smartwalle/ngx v1.1.1 // indirect
	github.com/smartwalle/nsign v1.0.9 // indirect
	github.com/xeipuuv/gojsonschema v1.2.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace github.com/holdfast-pay/holdfast => ../
