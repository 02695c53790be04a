<?php
// Ten buyers at once want the three pieces there are:
//   scripts/with-holdfast php examples/shop-php/shop.test.php
declare(strict_types=1);

require __DIR__ . '/holdfast.php';

const BUYERS = 10;
const PIECES = 3; // as in stock.csv
const READY_SECONDS = 10;

function check(mixed $got, mixed $want, string $what): void
{
    if ($got !== $want) {
        throw new Exception("$what: got " . json_encode($got) . ', want ' . json_encode($want));
    }
}

/** A free loopback port, until somebody else takes it. */
function freePort(): int
{
    $socket = stream_socket_server('tcp://127.0.0.1:0');
    return (int) substr(strrchr(stream_socket_get_name($socket, false), ':'), 1);
}

/** Serves the shop, with a process for each buyer, in a process group of their own. */
function serve(string $address): mixed
{
    $shop = proc_open(['setsid', PHP_BINARY, '-S', $address, __DIR__ . '/shop.php'], [2 => ['file', '/dev/null', 'w']], $pipes, null,
        ['PHP_CLI_SERVER_WORKERS' => (string) BUYERS, 'SHOP_URL' => "http://$address"] + getenv());
    for ($until = time() + READY_SECONDS; !@stream_socket_client("tcp://$address"); usleep(20_000)) {
        check(time() < $until && proc_get_status($shop)['running'], true, 'the shop serves');
    }
    return $shop;
}

/** A browser: it keeps its cookies, and shows where it is sent instead of going there. */
function browser(): CurlHandle
{
    $curl = curl_init();
    curl_setopt_array($curl, [CURLOPT_COOKIEFILE => '', CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 30]);
    return $curl;
}

function ask(CurlHandle $buyer, string $url, ?array $form): CurlHandle
{
    curl_setopt_array($buyer, $form === null
        ? [CURLOPT_URL => $url, CURLOPT_HTTPGET => true]
        : [CURLOPT_URL => $url, CURLOPT_POST => true, CURLOPT_POSTFIELDS => http_build_query($form)]);
    return $buyer;
}

/** [status, page, where it leads] */
function answer(CurlHandle $buyer, string $page): array
{
    return [curl_getinfo($buyer, CURLINFO_RESPONSE_CODE), $page, (string) curl_getinfo($buyer, CURLINFO_REDIRECT_URL)];
}

function visit(CurlHandle $buyer, string $url, ?array $form = null): array
{
    return answer($buyer, (string) curl_exec(ask($buyer, $url, $form)));
}

/** All at the same time. */
function rush(array $buyers): array
{
    $all = curl_multi_init();
    array_map(fn ($b) => curl_multi_add_handle($all, $b), $buyers);
    do {
        curl_multi_exec($all, $running);
        curl_multi_select($all);
    } while ($running > 0);
    $answers = array_map(fn ($b) => answer($b, (string) curl_multi_getcontent($b)), $buyers);
    array_map(fn ($b) => curl_multi_remove_handle($all, $b), $buyers);
    return $answers;
}

function number(array $front): string
{
    check(preg_match('/name="checkout" value="([0-9a-f]{32})"/', $front[1], $found), 1, 'the page has a form');
    return $found[1];
}

function sell(string $shop): void
{
    $buyers = array_map(fn () => browser(), range(1, BUYERS));
    $numbers = array_map(fn ($b) => number(visit($b, "$shop/")), $buyers);
    $answers = rush(array_map(fn ($b, $n) => ask($b, "$shop/checkout", ['checkout' => $n]), $buyers, $numbers));
    $won = array_keys(array_filter($answers, fn ($a) => $a[0] === 303));
    $lost = array_filter($answers, fn ($a) => $a[0] === 409 && str_contains($a[1], 'Sold out'));
    check([count($won), count($lost)], [PIECES, BUYERS - PIECES], 'buyers who are sent to pay, and who are told that it is sold out');

    foreach ($won as $i) {
        [$buyer, $page] = [$buyers[$i], $answers[$i][2]];
        check(visit($buyer, "$shop/checkout", ['checkout' => $numbers[$i]])[2], $page, 'where a double click leads');
        check(str_contains(visit($buyer, "$shop/thanks")[1], 'data-state="paying"'), true, 'not paid before he has paid');
        $back = visit($buyer, $page, ['action' => 'pay'])[2]; // at Stripe
        check($back, "$shop/thanks", 'where Stripe sends the buyer');
        check(str_contains(visit($buyer, $back)[1], 'data-state="paid"'), true, 'paid when he is back');
    }
    [, $stock] = holdfast('GET', '/v1/items/tee-m/stock');
    check([$stock['on_hand'], $stock['held'], $stock['sold']], [0, 0, PIECES], 'the stock on hand, held and sold');
    $books = json_decode(file_get_contents(getenv('HOLDFAST_SANDBOX') . '/_sim/books'), true, 32, JSON_THROW_ON_ERROR);
    check(array_column($books['payments'], 'captured'), array_fill(0, PIECES, 1990), 'what Stripe took of the buyers');
    check(visit(browser(), "$shop/thanks")[0], 404, "a stranger's look at an order");
}

passthru(escapeshellarg(getenv('HOLDFAST')) . ' stock import ' . escapeshellarg(__DIR__ . '/stock.csv'), $status);
check($status, 0, 'the import');
$address = '127.0.0.1:' . freePort();
$shop = serve($address);
try {
    sell("http://$address");
    echo BUYERS . ' buyers, ' . PIECES . " pieces: nothing oversold, nobody charged twice\n";
} finally {
    posix_kill(-proc_get_status($shop)['pid'], SIGTERM);
    proc_close($shop);
}
