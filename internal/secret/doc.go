// Package secret knows what credentials look like: the one list for whoever must not store
// or print them. [Attribute] and [Parameter] judge a name by its words: authorization,
// x-api-key, user.password.
package secret
