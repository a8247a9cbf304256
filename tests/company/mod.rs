//! A company whose only way out is a proxy: docs/company.md.
//!
//! * `network`: the company: a laptop without a default route, a resolver that knows no name of the
//!   internet, and real proxies;
//! * `work`: programs inside work without any proxy setting of their own;
//! * `answers`: what a proxy refuses, and hostile proxies;
//! * `attacks`: the proxy is no way around the policy;
//! * `page`: docs/company.md, line by line;
//! * `settings`: what is said of a proxy, and what is not;
//! * `tls`: a proxy that is spoken to in TLS.

mod answers;
mod attacks;
mod network;
mod page;
mod settings;
mod tls;
mod work;
