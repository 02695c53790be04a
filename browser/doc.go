// Package browser walks through the pages of Holdfast with a real browser:
// Debian's Chromium, headless, against a whole shop on loopback.
//
// Every walk fails on what a visitor would only find in the console: an error, a
// refused style or script, a request to another site. Wherever it stops to look,
// axe-core looks too, on a phone and on a desk, one light and one dark, and in the
// other language the other way round. A route of the admin console at which no
// stop is (see console) fails as well.
package browser
