package browser

// stop is where a walk through the console stops to look.
type stop struct {
	name    string // of its pictures; "" = it was looked at before, and changed by little
	path    string // where it is; "" = where the walk is. {a name} stands for what is called so.
	deed    string // the form that is sent there, by its action; "" = none
	sees    says
	fields  []string // of the form: name and value, by turns
	until   string   // what comes true there; "" = that is all
	refused bool     // it is a page that says no
	wrong   string   // what is done to the store meanwhile, and undone
}

func at(name, path, inEn, inZh string) stop {
	return stop{name: name, path: path, sees: says{en: inEn, zh: inZh}}
}

func send(name, path, deed, inEn, inZh string, fields ...string) stop {
	return stop{name: name, path: path, deed: deed, sees: says{en: inEn, zh: inZh}, fields: fields}
}

func refuse(s stop) stop { s.refused = true; return s }

// console is, with farewell, every page of it and everything that can be done
// there, in the order in which anna does it, who is the first to come.
var console = []stop{
	at("admin-first-run", "/admin", "Add the first person", "添加第一位管理员"),
	refuse(send("admin-first-run-wrong", "", "/admin/first-run", "This token is wrong", "令牌错误", "token", "nonsense", "name", "anna", "password", secretWord)),
	send("", "", "/admin/first-run", "payouts to approve", "笔提现待审批", "token", "{token}", "name", "anna", "password", secretWord),
	{name: "admin-overview", path: "/admin/", sees: says{en: "Sandbox", zh: "沙箱"}, until: `document.querySelector("#rate").textContent !== "–" && document.querySelector("#chart-rate canvas")`},

	at("admin-items", "/admin/items", "Follow a number to see why", "点击数字即可查看它的由来"),
	refuse(send("admin-refused-field", "", "/admin/items", "Look at this field: Price", "请检查此字段：价格", "sku", "cup", "name", "Cup", "price", "cheap")),
	send("", "/admin/items", "/admin/items", "The item was saved.", "商品已保存。", "sku", "cup", "name", "Cup", "name_zh", "杯子", "price", "19.90", "stock", "5"),
	send("admin-why", "/admin/items/mug", "/admin/items/mug/adjust", "The stock was adjusted.", "库存已调整。", "quantity", "-3", "reason", "broken in transit"),
	refuse(send("admin-refused", "", "/admin/items/mug/adjust", "Orders hold those pieces, or there are not so many.", "这些件数已被订单占用，或库存不足。", "quantity", "-999", "reason", "a slip")),
	at("admin-why-then", "/admin/items/mug?at={then}", "This is how it was at", "这是当时的情况"),
	refuse(at("admin-form", "/admin/items/mug?at=yesterday", "That did not work", "操作未成功")),

	at("admin-sales", "/admin/sales", "Windows of time", "有独立价格的限时活动"),
	send("", "", "/admin/sales", "The sale was saved.", "促销已保存。", "sku", "cup", "opens_at", "{tomorrow}", "closes_at", "{the day after}", "price", "9.90", "per_customer", "1"),
	at("admin-sale", "/admin/sales/{sale}", "open now", "进行中"),
	send("", "", "/admin/sales/{sale}/end", "The sale is over.", "促销已结束。", "reason", "enough"),

	at("admin-orders", "/admin/orders", "An order's page tells everything", "订单页会说明发生过的一切"),
	at("admin-order", "/admin/orders/{refunded order}", "Partly refunded", "已部分退款"),
	send("", "/admin/orders/{order}", "/admin/orders/{order}/fulfil", "The order was handed over.", "订单已标记为交付。", "reason", "picked up"),
	send("", "", "/admin/orders/{order}/refund", "The refund is on its way.", "退款已发起。", "amount", "5.00", "restock", "yes", "reason", "too small"),
	send("", "/admin/orders/{held}", "/admin/orders/{held}/cancel", "The order is cancelled, or will be", "订单已取消，或将在付款关闭后取消。", "reason", "he called"),
	at("admin-payments", "/admin/payments", "Every attempt to pay", "每一次付款尝试"),
	at("admin-payment", "/admin/payments/{payment}", "precreate", "precreate"),
	at("admin-refunds", "/admin/refunds", "What goes back to buyers", "退还给买家的款项"),
	at("admin-refund", "/admin/refunds/{refund}", "a scratch", "a scratch"),

	at("admin-payouts", "/admin/payouts", "Whoever asks for one can't approve it", "申请人不能审批自己的提现"),
	at("admin-payout", "/admin/payouts/{payout}", "waits for a second person", "等待第二人审批"),
	send("", "", "/admin/payouts/{payout}/approve", "The payout is approved and on its way.", "提现已批准，正在发送。", "reason", "checked the invoice"),
	send("", "/admin/payouts/{another payout}", "/admin/payouts/{another payout}/cancel", "The payout is cancelled; its money is back.", "提现已取消，款项已退回。", "reason", "twice"),
	at("admin-accounts", "/admin/accounts", "Wallets of customers and sellers", "客户与商家的钱包"),
	at("admin-account", "/admin/accounts/seller-1", "Statement", "流水"),
	at("admin-account-then", "/admin/accounts/seller-1?at={then}", "Money at that moment", "当时的资金"),
	send("", "", "/admin/accounts/seller-1/freeze", "The account is frozen.", "账户已冻结。", "reason", "a letter from the court"),
	send("", "", "/admin/accounts/seller-1/unfreeze", "Money can leave the account again.", "账户已解除冻结。", "reason", "another letter"),
	at("admin-transfer", "/admin/transfers/{transfer}", "parcel 7", "parcel 7"),
	at("admin-hold", "/admin/holds/{hold}", "Hold of money", "资金冻结"),

	at("admin-tasks", "/admin/tasks", "Calls to gateways", "网关调用"),
	at("", "/admin/tasks/{payment}", "nothing more", "尝试次数"),
	send("admin-task", "/admin/tasks/{payout}", "/admin/tasks/{payout}/park", "The task was put aside.", "任务已搁置。", "reason", "they are closed"),
	send("", "", "/admin/tasks/{payout}/retry", "The task is tried now.", "任务正在重试。", "reason", "they are open"),
	at("admin-notifications", "/admin/notifications", "Authentic notifications", "网关通知"),
	at("admin-notification", "/admin/notifications/purse/notice-1", "it is about nothing here", "在本店找不到对应内容"),
	send("", "", "/admin/notifications/purse/notice-1/retry", "The notification is looked at again.", "正在重新匹配通知。", "reason", "it may be there now"),

	at("admin-webhooks", "/admin/webhooks", "Addresses of the shop that are told", "接收签名事件通知的地址"),
	at("admin-webhook", "/admin/webhooks/{hook}", "Deliveries, the newest first", "投递记录，最新的在前"),
	send("", "/admin/webhooks/{hook}?event={event}", "/admin/webhooks/{hook}/replay", "The event is delivered again.", "事件正在重新投递。", "reason", "they lost it"),
	send("", "", "/admin/webhooks/{hook}/disable", "Nothing is delivered there now.", "已停止投递。", "reason", "they move"),
	send("", "", "/admin/webhooks/{hook}/enable", "Events are delivered again.", "已恢复投递。", "reason", "they have moved"),
	send("", "", "/admin/webhooks/{hook}/rotate", "This is the secret that signs.", "这是签名密钥", "reason", "somebody has left"),
	send("admin-webhook-made", "/admin/webhooks", "/admin/webhooks", "This is the secret that signs.", "这是签名密钥", "url", "{url}", "types", "order.paid", "description", "the warehouse"),

	at("admin-audit", "/admin/audit", "It can only grow", "只增不减"),
	at("admin-keys", "/admin/keys", "A key is shown once", "密钥只在创建时显示一次"),
	send("admin-key-made", "", "/admin/keys", "This is the key. Copy it now", "这就是密钥，请立即复制", "name", "shop", "scope", "write", "days", "90"),
	at("admin-key", "/admin/keys/{key}", "cash desk", "cash desk"),
	send("", "", "/admin/keys/{key}/revoke", "The key is revoked.", "密钥已吊销。", "reason", "lost"),
	at("admin-staff", "/admin/staff", "People who may sign in here", "可以登录控制台的人员"),
	send("", "", "/admin/staff", "The person was saved.", "人员已保存。", "name", "vera", "password", secretWord, "role", "viewer"),
	at("admin-person", "/admin/staff/anna", "Admin: people and keys too", "管理员：还可管理人员和密钥"),
	refuse(send("", "", "/admin/staff", "You can't take your own role away.", "不能取消自己的权限。", "role", "viewer")),

	at("admin-reconcile", "/admin/reconcile", "To do it again changes nothing", "重复执行不会产生变化"),
	send("admin-reconcile-result", "", "/admin/reconcile", "not in the books", "账簿中没有", "gateway", "purse"),
	refuse(send("admin-reconcile-refused", "/admin/reconcile", "/admin/reconcile", "Look at this field: Day", "请检查此字段：日期", "gateway", "purse", "day", "2020-02-20")),
	at("admin-verify", "/admin/verify", "from the journal alone", "仅凭日志"),
	send("admin-verify-result", "", "/admin/verify", "Everything agrees with the journal.", "一切与日志相符。"),
	{name: "admin-verify-wrong", path: "/admin/verify", deed: "/admin/verify", sees: says{en: "Something does not agree with the journal.", zh: "有内容与日志不符。"},
		wrong: `UPDATE balances SET posted = posted %s 1 WHERE account = 'stock' AND asset = 'sku:seat'`},
	at("admin-search", "/admin/search?q=nothing-like-it", "Nothing has this id", "没有找到这个编号"),
	refuse(at("admin-nowhere", "/admin/nowhere", "There is nothing here", "这里什么也没有")),

	at("dial-alipay", "{alipay}", "Alipay simulator", "支付宝模拟器"),
	at("dial-stripe", "{stripe}", "Stripe simulator", "Stripe 模拟器"),
	at("dial-wechatpay", "{wechatpay}", "WeChat Pay simulator", "微信支付模拟器"),
}

// farewell is what anna does last.
var farewell = []stop{
	send("", "/admin/webhooks/{hook}", "/admin/webhooks/{hook}/delete", "The address is deleted.", "地址已删除。", "reason", "they have closed"),
	at("admin-password", "/admin/password", "All your sessions end", "所有会话都会结束"),
	refuse(send("", "", "/admin/password", "The present password is not right.", "当前密码不正确。", "old", "a guess of mine", "password", secretWord)),
	send("", "/admin/password", "/admin/password", "Your password was changed.", "密码已修改。", "old", secretWord, "password", "a longer "+secretWord),
	send("", "", "/admin/sign-out", "For the people who run this shop.", "供本店工作人员使用。"),
	at("admin-sign-in", "/admin/items", "For the people who run this shop.", "供本店工作人员使用。"),
	refuse(send("admin-sign-in-wrong", "", "/admin/sign-in", "The name or the password is not right.", "用户名或密码不正确。", "name", "anna", "password", secretWord)),
	send("", "", "/admin/sign-in", "Follow a number to see why", "点击数字即可查看它的由来", "name", "anna", "password", "a longer "+secretWord),
}
