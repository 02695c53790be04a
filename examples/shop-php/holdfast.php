<?php
// Holdfast over HTTP, with nothing but curl.
declare(strict_types=1);

const TRIES = 3;
const SECONDS = 10; // for one try

/**
 * Asks Holdfast and returns [status, document]. Every answer below 500 is final.
 * Otherwise nobody knows whether it was done, and it is safe to ask again under
 * the same key: what was done is not done twice. After TRIES it throws.
 */
function holdfast(string $method, string $path, ?array $body = null, string $key = ''): array
{
    $headers = ['Authorization: Bearer ' . getenv('HOLDFAST_KEY'), 'Content-Type: application/json'];
    if ($key !== '') {
        $headers[] = "Idempotency-Key: $key";
    }
    for ($try = 1; ; $try++) {
        $curl = curl_init(getenv('HOLDFAST_URL') . $path);
        curl_setopt_array($curl, [
            CURLOPT_CUSTOMREQUEST => $method, CURLOPT_HTTPHEADER => $headers,
            CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => SECONDS,
        ]);
        if ($method !== 'GET') {
            curl_setopt($curl, CURLOPT_POSTFIELDS, $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR));
        }
        $text = curl_exec($curl);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if (is_string($text) && $status < 500) {
            return [$status, json_decode($text, true, 32, JSON_THROW_ON_ERROR)];
        }
        if ($try === TRIES) {
            throw new RuntimeException("holdfast: $method $path: no answer: " . (curl_error($curl) ?: "status $status"));
        }
        usleep(200_000 * $try);
    }
}
