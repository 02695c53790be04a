<?php
// The checkout of a small shop: php -S 127.0.0.1:8000 shop.php. It finds Holdfast
// in HOLDFAST_URL and HOLDFAST_KEY, and itself in SHOP_URL.
declare(strict_types=1);

require __DIR__ . '/holdfast.php';

const SKU = 'tee-m';

session_start(['cookie_httponly' => true, 'cookie_samesite' => 'Lax']);

try {
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    match ($_SERVER['REQUEST_METHOD'] . " $path") {
        'GET /' => front(),
        'POST /checkout' => checkout((string) ($_POST['checkout'] ?? '')),
        'GET /thanks' => thanks((string) ($_SESSION['order'] ?? '')),
        default => page(404, 'There is nothing here', ''),
    };
} catch (Exception $e) {
    error_log((string) $e);
    page(503, 'One moment, please', '<p>We do not know yet whether that worked. Reload this page: you will not buy twice.</p>');
}

function front(): void
{
    [$status, $item] = holdfast('GET', '/v1/items/' . SKU);
    if ($status !== 200) {
        page(404, 'We have nothing yet', '<p>Import stock.csv first.</p>');
        return;
    }
    [, $stock] = holdfast('GET', '/v1/items/' . SKU . '/stock');
    $price = number_format($item['price'] / 100, 2) . ' ' . $item['currency']; // to show it; nothing is computed with it
    // The form carries the number of this checkout, so that a double click, or a
    // reload after a time-out, is the same one again.
    page(200, $item['name'], "<p>$price, {$stock['available']} left</p>"
        . '<form method="post" action="/checkout"><input type="hidden" name="checkout" value="' . bin2hex(random_bytes(16)) . '">'
        . '<button>Buy</button></form>');
}

function checkout(string $number): void
{
    if (!preg_match('/^[0-9a-f]{32}$/', $number)) {
        page(400, 'Please start again', '<a href="/">To the shop</a>');
        return;
    }
    [$status, $order] = holdfast('POST', '/v1/orders', ['lines' => [['sku' => SKU, 'quantity' => 1]]], "order-$number");
    if ($status !== 201) {
        $sold = $order['code'] === 'sold_out';
        page($status, $sold ? 'Sold out' : 'Not possible', '<p>' . ($sold ? 'Somebody was faster. You have not been charged.' : htmlspecialchars($order['detail'])) . '</p>');
        return;
    }
    $_SESSION['order'] = $order['id']; // held for this buyer until $order['expires_at']
    [$status, $payment] = holdfast('POST', "/v1/orders/{$order['id']}/payments",
        ['return_url' => (getenv('SHOP_URL') ?: 'http://127.0.0.1:8000') . '/thanks'], "money-$number");
    if ($status === 201 && $payment['state'] === 'open') {
        header("Location: {$payment['url']}", true, 303);
        return;
    }
    header('Location: /thanks', true, 303); // Stripe has not answered yet, or the order is beyond paying: that page knows
}

// thanks is where the buyer comes back to. That he came proves nothing: whether
// he has paid is Holdfast's word, who asks Stripe.
function thanks(string $id): void
{
    [$status, $order] = $id === '' ? [404, null] : holdfast('GET', "/v1/orders/$id");
    if ($status !== 200) {
        page(404, 'There is no order of yours', '<a href="/">To the shop</a>');
        return;
    }
    $payment = end($order['payments']);
    if ($order['state'] === 'paying' && $payment) {
        [, $payment] = holdfast('POST', "/v1/payments/{$payment['id']}/refresh");
        [, $order] = holdfast('GET', "/v1/orders/$id");
    }
    [$title, $text] = match ($order['state']) {
        'paid', 'fulfilled' => ['Thank you', 'Paid. It is yours.'],
        'held', 'paying' => ['Not paid yet', ($payment['state'] ?? '') === 'open'
            ? '<a href="' . htmlspecialchars($payment['url']) . '">Pay now</a>' : 'Reload this page in a moment.'],
        'closing' => ['Not paid yet', 'Your time is over. We are asking whether your money was faster.'],
        'expired', 'cancelled' => ['Too late', 'You have not been charged.'],
        'refunding', 'refunded' => ['Too late', 'Your money came when it was sold, and goes back to you.'],
        default => ['Your order', $order['state']],
    };
    page(200, $title, "<p data-state=\"{$order['state']}\">$text</p>");
}

function page(int $status, string $title, string $html): void
{
    http_response_code($status);
    $title = htmlspecialchars($title);
    echo "<!doctype html><meta charset=\"utf-8\"><title>$title</title><h1>$title</h1>$html\n";
}
