package wechatpaysim

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"embed"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The merchant that a Sim serves, and what it needs to be that merchant.
const (
	MerchantID     = "1900000001"
	AppID          = "wx0000000000000001"
	MobileAppID    = "wx0000000000000002" // of the merchant's mobile app
	MerchantSerial = "3775B6A45ACD588826D15E583A95F5DD00000001"
	APIv3Key       = "sandbox-apiv3-key-0123456789abcd"
	PublicKeyID    = "PUB_KEY_ID_0119000000012026010100000000000001"
)

// The key files, PEM, under /_sim/keys/ as well.
const (
	MerchantKeyFile     = "merchant.key.pem"  // the merchant's private key
	PublicKeyFile       = "public.pub.pem"    // the WeChat Pay public key, of PublicKeyID
	CertificateFile     = "platform.cert.pem" // the platform certificate
	NextCertificateFile = "next.cert.pem"     // the one that follows it, see Rotate
)

//go:embed keys/*.pem
var keyFiles embed.FS

// KeyFile returns one of the files named above, and nil for any other.
func KeyFile(name string) []byte {
	switch name {
	case MerchantKeyFile, PublicKeyFile, CertificateFile, NextCertificateFile:
		return file(name)
	}
	return nil
}

func file(name string) []byte {
	b, err := keyFiles.ReadFile("keys/" + name)
	if err != nil {
		panic("wechatpaysim: an embedded key: " + err.Error())
	}
	return b
}

// keys are the merchant's public key and the platform's own.
type keys struct {
	merchant                    *rsa.PublicKey
	public, platform, following signer
}

// signer is one key that signs for WeChat Pay, under the id that messages name.
type signer struct {
	id          string
	key         *rsa.PrivateKey
	certificate *x509.Certificate // nil for the public key
	pem         []byte
}

func loadKeys() keys {
	return keys{
		merchant:  &readKey(MerchantKeyFile).PublicKey,
		public:    signer{id: PublicKeyID, key: readKey("public.key.pem")},
		platform:  certified("platform.key.pem", CertificateFile),
		following: certified("next.key.pem", NextCertificateFile),
	}
}

func certified(keyName, certName string) signer {
	block, _ := pem.Decode(file(certName))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		panic("wechatpaysim: an embedded certificate: " + err.Error())
	}
	return signer{strings.ToUpper(cert.SerialNumber.Text(16)), readKey(keyName), cert, file(certName)}
}

func readKey(name string) *rsa.PrivateKey {
	block, _ := pem.Decode(file(name))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		panic("wechatpaysim: an embedded key: " + err.Error())
	}
	return key.(*rsa.PrivateKey)
}

// published are the certificates that merchants can download.
func (s *Sim) published() []signer {
	if s.rotated {
		return []signer{s.keys.platform, s.keys.following}
	}
	return []signer{s.keys.platform}
}

// certificateSigner is the certificate in use.
func (s *Sim) certificateSigner() signer {
	list := s.published()
	return list[len(list)-1]
}

// signerFor is the key that a message is signed with: the one asked for, if it
// is in use, else what Config says. A switch takes the other kind.
func (s *Sim) signerFor(asked string, switched bool) signer {
	chosen := s.keys.public
	if s.byCert && asked != s.keys.public.id {
		chosen = s.certificateSigner()
	}
	for _, c := range s.published() {
		if c.id == asked {
			chosen = c
		}
	}
	switch {
	case !switched:
		return chosen
	case chosen.certificate == nil:
		return s.certificateSigner()
	}
	return s.keys.public
}

// Rotate publishes the next platform certificate, with which messages that are
// signed by certificate are signed from now on. The old one stays listed.
func (s *Sim) Rotate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotated = true
}

// seal is one signature of WeChat Pay's.
type seal struct {
	by    signer
	at    time.Time
	nonce string
	probe bool // WeChat Pay's own trial, which must not verify
}

// sign puts the signature over the body into the header.
func (k seal) sign(h http.Header, body []byte) {
	at := strconv.FormatInt(k.at.Unix(), 10)
	digest := sha256.Sum256([]byte(at + "\n" + k.nonce + "\n" + string(body) + "\n"))
	raw, err := rsa.SignPKCS1v15(nil, k.by.key, crypto.SHA256, digest[:])
	if err != nil {
		panic("wechatpaysim: sign: " + err.Error())
	}
	signature := base64.StdEncoding.EncodeToString(raw)
	if k.probe {
		signature = "WECHATPAY/SIGNTEST/" + signature
	}
	h.Set("Wechatpay-Timestamp", at)
	h.Set("Wechatpay-Nonce", k.nonce)
	h.Set("Wechatpay-Serial", k.by.id)
	h.Set("Wechatpay-Signature", signature)
	h.Set("Wechatpay-Signature-Type", scheme)
}

// encrypt seals a text with the APIv3 key.
func (s *Sim) encrypt(plain []byte, about string) object {
	block, err := aes.NewCipher([]byte(APIv3Key))
	if err != nil {
		panic("wechatpaysim: the APIv3 key: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("wechatpaysim: GCM: " + err.Error())
	}
	nonce := s.id(gcm.NonceSize(), letters)
	sealed := gcm.Seal(nil, []byte(nonce), plain, []byte(about))
	return object{
		"algorithm": "AEAD_AES_256_GCM", "ciphertext": base64.StdEncoding.EncodeToString(sealed),
		"nonce": nonce, "associated_data": about,
	}
}

// downloadCertificates answers with the platform certificates, each encrypted.
func (s *Sim) downloadCertificates(c *call) (any, *apiError) {
	data := []object{}
	for _, p := range s.published() {
		data = append(data, object{
			"serial_no": p.id, "effective_time": stamp(p.certificate.NotBefore), "expire_time": stamp(p.certificate.NotAfter),
			"encrypt_certificate": s.encrypt(p.pem, "certificate"),
		})
	}
	return object{"data": data}, nil
}

// verifyRequest checks the merchant's signature over one request.
func (s *Sim) verifyRequest(r *http.Request, body []byte, now time.Time) *apiError {
	kind, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if kind != scheme {
		return signError("Authorization is not of the type " + scheme)
	}
	given := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		unquoted := strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`)
		if !ok || len(value) != len(unquoted)+2 || given[name] != "" {
			return signError("Authorization is not readable")
		}
		given[name] = unquoted
	}
	if given["mchid"] != MerchantID {
		return signError("mchid in Authorization is unknown")
	}
	if !strings.EqualFold(given["serial_no"], MerchantSerial) {
		return signError("serial_no in Authorization is not the merchant certificate's")
	}
	if given["nonce_str"] == "" || len(given["nonce_str"]) > maxNonce {
		return signError("nonce_str in Authorization is missing or too long")
	}
	seconds, err := strconv.ParseInt(given["timestamp"], 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age > signatureWindow || age < -signatureWindow {
		return signError("timestamp in Authorization is out of range")
	}
	message := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n", r.Method, r.URL.RequestURI(), given["timestamp"], given["nonce_str"], body)
	digest := sha256.Sum256([]byte(message))
	raw, err := base64.StdEncoding.DecodeString(given["signature"])
	if err != nil || rsa.VerifyPKCS1v15(s.keys.merchant, crypto.SHA256, digest[:], raw) != nil {
		return signError("the signature does not fit the request")
	}
	return nil
}
