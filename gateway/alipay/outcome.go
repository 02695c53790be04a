package alipay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-pay/holdfast/gateway"
)

// Codes of Alipay's.
const (
	codeSuccess  = "10000"
	codeBusiness = "40004" // the sub code says why

	subNotExist = "ACQ.TRADE_NOT_EXIST"
	subNoOrder  = "ORDER_NOT_EXIST" // of transfers
)

// Codes of our own, beside Alipay's.
const (
	codeUnfit      = "_unsupported" // after what is at fault
	codeDeadline   = "deadline_missing"
	codeAbsent     = "not_found"
	codeUnsigned   = "unsigned"
	codeUnreadable = "unreadable"
)

// What Alipay refuses for good. All else is not final: 20000 and SYSTEM_ERROR
// that it does not know itself, 40001 to 40006 without a sub code of ours that
// the configuration is wrong.
var (
	finalOfCreate = []string{
		"ACQ.INVALID_PARAMETER", "ACQ.EXIST_FORBIDDEN_WORD", "ACQ.TOTAL_FEE_EXCEED", "ACQ.PARTNER_ERROR",
		"ACQ.SELLER_BEEN_BLOCKED", "ACQ.ACCESS_FORBIDDEN",
	}
	finalOfRefund = []string{
		"ACQ.SELLER_BALANCE_NOT_ENOUGH", "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL", "ACQ.REASON_TRADE_REFUND_FEE_ERR",
		"ACQ.TRADE_HAS_FINISHED", "ACQ.TRADE_STATUS_ERROR",
	}
	// Not in it: what is wrong with our own account or contract, which people
	// put right, and a number that was used with other parameters.
	finalOfPayout = []string{
		"INVALID_PARAMETER", "PAYER_BALANCE_NOT_ENOUGH", "BALANCE_IS_NOT_ENOUGH", "PAYER_PAYEE_CANNOT_SAME",
		"PAYEE_NOT_EXIST", "PAYEE_ACCOUNT_NOT_EXSIT", "PAYEE_ACCOUNT_STATUS_ERROR", "PAYEE_USERINFO_STATUS_ERROR",
		"PAYEE_USER_INFO_ERROR", "PAYEE_USER_TYPE_ERROR", "PAYEE_ACC_OCUPIED", "PAYEE_NOT_RELNAME_CERTIFY",
		"PAYEE_CERT_INFO_ERROR", "PERMIT_NON_BANK_LIMIT_PAYEE", "PERM_AML_NOT_REALNAME_REV", "PERMIT_CHECK_RECEIVE_LIMIT",
		"NO_ACCOUNT_RECEIVE_PERMISSION", "RELEASE_USER_FORBBIDEN_RECIEVE", "BLOCK_USER_FORBBIDEN_RECIEVE",
		"EXCEED_LIMIT_SM_AMOUNT", "EXCEED_LIMIT_SM_MIN_AMOUNT", "EXCEED_LIMIT_PERSONAL_SM_AMOUNT", "EXCEED_LIMIT_ENT_SM_AMOUNT",
		"EXCEED_LIMIT_DM_AMOUNT", "EXCEED_LIMIT_DM_MAX_AMOUNT", "EXCEED_LIMIT_MM_AMOUNT", "EXCEED_LIMIT_MM_MAX_AMOUNT",
		"EXCEED_LIMIT_UNRN_DM_AMOUNT", "EXCEED_LIMIT_DC_RECEIVED", "MEMO_REQUIRED_IN_TRANSFER_ERROR", "REMARK_HAS_SENSITIVE_WORD",
		"SECURITY_CHECK_FAILED",
	}
)

// isFinal says that Alipay read the call and will never do it.
func isFinal(err error, final []string) bool {
	var f *failure
	return errors.As(err, &f) && f.code == codeBusiness && slices.Contains(final, f.sub)
}

// isAbsent says that Alipay has no such trade, which is not to say that it
// will have none.
func isAbsent(err error) bool { return isFinal(err, []string{subNotExist}) }

func code(err error) string {
	var f *failure
	switch {
	case errors.As(err, &f) && f.sub != "":
		return f.sub
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, errUnsigned):
		return codeUnsigned
	case errors.Is(err, errUnreadable):
		return codeUnreadable
	}
	return ""
}

func unknown(p gateway.Payment, what string, err error) gateway.Answer {
	return gateway.Answer{
		Outcome: gateway.Unknown, Ref: p.Ref, Code: code(err),
		Err: fmt.Errorf("alipay: %s payment %s: %w", what, p.ID, err),
	}
}

func unknownRefund(r gateway.Refund, what string, err error) gateway.RefundAnswer {
	return gateway.RefundAnswer{
		Outcome: gateway.Unknown, Ref: r.Ref, Code: code(err),
		Err: fmt.Errorf("alipay: %s refund %s of payment %s: %w", what, r.ID, r.Payment.ID, err),
	}
}
