package secret

import "testing"

func TestAttribute(t *testing.T) {
	refused := map[string][]string{
		"headers.": {"authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "cookie2", "x-api-key", "X_API_KEY", "apikey",
			"x-auth-key", "x-auth", "auth", "x-auth-token", "x-auth-request-access-token", "x-access-key", "x-access-token", "dpop",
			"x-amzn-oidc-data", "x-amzn-oidc-accesstoken", "x-amzn-oidc-identity", "x-session-id", "x-session", "x-sid", "x-amz-security-token",
			"x-goog-iap-jwt-assertion", "cf-access-jwt-assertion", "x-hub-signature-256", "signature", "x-goog-api-key", "x-functions-key",
			"ocp-apim-subscription-key", "x-rapidapi-key", "x-csrf-token", "private-token", "x-otp", "x-vault-token", "x-client-secret",
			"x-key", "key", "x-ms-token-aad-id-token", "x-shopify-hmac-sha256", "x-forwarded-access-token", "x-amzn-authorization"},
		"query.": {"sig", "sas", "key", "code", "auth", "pwd", "access_key", "sessionid", "session_id", "sid", "PHPSESSID", "JSESSIONID",
			"connect.sid", "token", "access_token", "accessToken", "apiKey", "APIkey", "api key", "id_token", "client_secret", "client_assertion",
			"password", "passwd", "pass", "pin", "otp", "SAMLResponse", "X-Amz-Signature", "X-Amz-Credential", "AWSAccessKeyId", "jwt",
			"code_verifier", "ticket", "oauth2", "refreshToken", "private_key", "user[password]"},
		"": {"password", "user.api_key", "env.client-secret", "db.pwd", "user.token", "apiKey", "session_id", "state.sessionId", "accounts.jwt",
			"Headers.X-Auth", "cookies.sid", "form.pin", "x.private_key", "encryption.key_credentials", "cookie"},
	}
	usable := map[string][]string{
		"headers.": {"user-agent", "accept", "host", "origin", "referer", "x-query-hash", "sec-ch-ua", "sec-websocket-key", "idempotency-key",
			"x-cache-key", "surrogate-key", "x-auth-email", "x-auth-request-user", "x-forwarded-for", "x-country-code", "x-author", "x-token-count",
			"x-bypass-waf", "authority", "x-original-url", "x-passenger", "x-signal", "keyboard", "x-pinned", "x-encoded", ""},
		"query.": {"q", "page", "keyword", "postal_code", "promo_code", "sort_key", "max_tokens", "token_type", "design", "sidebar", "classic", "lang"},
		"": {"path", "method", "metrics.token_count", "metrics.cache_key_count", "metrics.prompt_tokens", "metrics.failed_auth", "state.has_cookies",
			"env.country", "session.count", "auth.method", "cache.key", "event.code", "account_key_age", "cookies.theme", "", ".", "headers"},
	}
	for prefix, names := range refused {
		for _, n := range names {
			if !Attribute(prefix + n) {
				t.Errorf("%s is accepted", prefix+n)
			}
		}
	}
	for prefix, names := range usable {
		for _, n := range names {
			if Attribute(prefix + n) {
				t.Errorf("%s is refused", prefix+n)
			}
		}
	}
}

// The filter before gradeOf lets every name of a credential pass.
func TestHints(t *testing.T) {
	for word, g := range credentialWords {
		if g != qualifier && !hints(word) {
			t.Errorf("%s", word)
		}
	}
	for _, word := range []string{"authorization", "cookie", "apikey", "secret", "password", "passwd", "credential", "signature", "jwt", "assertion", "token",
		"sessionid", "sessid", "passphrase", "X-API-KEY", "Session Id", "privateKey"} {
		if !hints("x" + word) {
			t.Errorf("%s", word)
		}
	}
	for _, word := range []string{"path", "method", "headers", "scenario", "candidates", "user-agent", "created_at", "id", "a_u_t_h", ""} {
		if hints(word) {
			t.Errorf("%s has a hint", word)
		}
	}
}
