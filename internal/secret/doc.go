// Package secret knows what credentials and personal data look like: the one list for
// whoever must not store or print them.
//
//  1. [Attribute] and [Parameter] judge a name by its words: authorization, x-api-key,
//     user.password.
//  2. [Find] and [Replace] look for secrets in text.
//  3. [Scanner.Body] looks through a body, JSON or text, and replaces what it finds inside the
//     string values, so that JSON stays JSON and is byte for byte the same elsewhere.
//  4. [Scanner.Label] does so for labels that come again in every row, and keeps apart what
//     was apart.
//
// Text is looked at once, from left to right, with no regular expression: the work is a
// small multiple of the length, whatever the text is, and nothing is allocated where
// nothing is found.
//
// # What is not found
//
// What has no shape of its own and nothing beside it that says what it is: a password in
// a sentence, a session id in a path, a name, an address, a telephone number. What is
// encoded otherwise than as JSON strings or percent escapes: base64 of a secret, text
// inside compressed or encrypted bytes. A secret that is cut up, or spread over two
// values. Bare card numbers of 13 digits, which look like article numbers and telephone
// numbers. On the other hand one in ten numbers of the right length that begin as card
// numbers do passes for one: the check digit rules out no more.
package secret
