package alipaysim

// apiError is an answer that is not a success.
type apiError struct {
	code, msg, sub, subMsg string
	// bare is answered without a signature: Alipay does not know whom it talks to.
	bare bool
}

func (e *apiError) Error() string { return e.sub + ": " + e.subMsg }

func (e *apiError) object() object {
	return object{{"code", e.code}, {"msg", e.msg}, {"sub_code", e.sub}, {"sub_msg", e.subMsg}}
}

func missing(name string) *apiError {
	return &apiError{"40001", "Missing Required Arguments", "isv.missing-" + name, "缺少参数 " + name, true}
}

func invalid(name, detail string) *apiError {
	return &apiError{"40002", "Invalid Arguments", "isv.invalid-" + name, detail, true}
}

func business(sub, detail string) *apiError {
	return &apiError{"40004", "Business Failed", "ACQ." + sub, detail, false}
}

// fund is business of the calls about transfers.
func fund(sub, detail string) *apiError {
	return &apiError{"40004", "Business Failed", sub, detail, false}
}

// wrong is parameter of the calls about transfers.
func wrong(name string) *apiError { return fund("INVALID_PARAMETER", "参数有误: "+name) }

func busy() *apiError {
	return &apiError{"20000", "Service Currently Unavailable", "aop.unknow-error", "系统繁忙", false}
}

var (
	errNotExist = business("TRADE_NOT_EXIST", "交易不存在")
	errStatus   = business("TRADE_STATUS_ERROR", "交易状态不合法")
	errOther    = business("CONTEXT_INCONSISTENT", "交易信息被篡改")
	errPaid     = business("TRADE_HAS_SUCCESS", "交易已被支付")
	errClosed   = business("TRADE_HAS_CLOSE", "交易已经关闭")
	errFinished = business("TRADE_HAS_FINISHED", "交易已完结")
	errOver     = business("REASON_TRADE_REFUND_FEE_ERR", "退款金额无效")
	errPoor     = business("SELLER_BALANCE_NOT_ENOUGH", "卖家余额不足")
	errSystem   = business("SYSTEM_ERROR", "系统错误")

	errNoOrder    = fund("ORDER_NOT_EXIST", "转账订单不存在")
	errNoMoney    = fund("PAYER_BALANCE_NOT_ENOUGH", "付款方余额不足")
	errFundSystem = fund("SYSTEM_ERROR", "系统繁忙")
)

func parameter(detail string) *apiError {
	return business("INVALID_PARAMETER", "参数无效: "+detail)
}
