//! Commands of curl.

use std::path::Path;

use plimsoll_import::curl::{import, import_words};

use crate::import::{Named, checked, checked_alone, shown};

fn imported(command: &str) -> String {
    let files = Named(&[
        ("body.json", b"{\"a\": 1}\n"),
        ("picture.png", b"\x89PNG\xff"),
        ("note.txt", b"line 1\nline 2\n"),
    ]);
    format!(
        "$ {command}\n{}\n",
        shown(&checked(import(command, Path::new(""), &files), Path::new(""), &files))
    )
}

#[test]
fn commands() {
    let text: String = [
        "curl http://127.0.0.1:8080/a?b=c#d",
        "curl -X POST 'https://api.example.com/items' \\\n  -H 'Content-Type: application/json' \\\n  \
         -H 'Authorization: Bearer x' \\\n  --data-raw $'{\"text\":\"it\\'s ${x}\"}' --compressed",
        "curl -sSLk -XPUT -d@body.json -d x=1 -u me:secret -A agent -e http://ref/ -b 'a=1; b=2' localhost/x",
        "curl --data-binary @picture.png http://h/",
        "curl --json '{\"a\":' --json '1}' http://h/",
        "curl -G --data-urlencode 'q=a b&c' --data-urlencode 'd@note.txt' -d n=1 'http://h/find?x=1'",
        "curl -F 'name=x y' -F 'file=@note.txt;type=text/x' -F 'text=<note.txt' --form-string 'r=@raw' http://h/",
        "curl -I --http2 -m 2.5 --connect-timeout 1 --resolve h:80:127.0.0.1 --unix-socket /s -4 http://h/",
        "curl -T note.txt --cacert ca.pem --cert c.pem --key k.pem --tlsv1.3 https://h/up",
        "curl -Z http://h/a http://h/b http://i/c --http2-prior-knowledge --connect-to a:1:b:2 \
         --interface 127.0.0.2 --max-redirs 3",
        "curl 'http://me:p%40ss@h/' -H 'Host:' -H 'X-A: 1' -H 'x-a: 2' -H 'Content-Length: 3' -H 'Empty;'",
        "curl --digest -u 'me:p\"a, ss' -H 'X-A: 1' --json '{}' 'http://h/a?b=1' http://h/b",
        "curl -g 'http://h/{a}[1]' -X PURGE -r 0-9 --request-target '*'",
        "curl -x proxy.example -U 'me:p@ss' --connect-to ::127.0.0.1: http://h/",
        "curl -x http://me:p%40ss@127.0.0.1:3128/ --noproxy localhost --resolve h:443:127.0.0.1 https://h/",
        "curl --socks5-hostname '[::1]:1080' --proxy-user me -4 http://h/",
        "curl --socks5 127.0.0.1 -x '' -U me:x http://h/",
        "curl --location-trusted -u a:b http://h/",
    ]
    .iter()
    .map(|command| imported(command))
    .collect();
    insta::assert_snapshot!(text);
}

#[test]
fn mistakes() {
    let text: String = [
        "curl",
        "curl http://h/ | jq .",
        "curl \"http://h/$ID\"",
        "curl 'http://h/",
        "curl http://h/ -x http://proxy:3128 --ntlm --http3 --next -n",
        "curl http://h/ --hedaer x --heade y --request=POST -?",
        "curl ftp://h/ 'http://h/a b' 'http://h/{a,b}' 'http://h/[1-9]'",
        "curl http://h/ -X 'A B' -H nonsense -H @file -b cookies.txt -u me --cert c.pem:pw -m soon --interface eth0",
        "curl http://h/ -d @none -d @- -F x -F y=@picture.png -T z",
        "curl http://h/ -d",
        "curl --digest http://h/",
        "curl --digest -u a:b -Z http://h/a http://h/b",
        "curl http://h/ -x https://proxy:3128 -p --preproxy socks5://a",
        "curl http://h/ -x proxy:x --proxy-digest",
        "curl @c.sh",
    ]
    .iter()
    .map(|command| imported(command))
    .collect();
    insta::assert_snapshot!(text);
}

#[test]
fn words_of_a_shell_are_the_same() {
    let words = ["-X", "POST", "http://h/", "-d", "a=${b}"].map(str::to_owned);
    let by_words = checked_alone(import_words(&words, Path::new(""), &Named(&[]))).unwrap();
    let by_text =
        checked_alone(import("curl -X POST http://h/ -d 'a=${b}'", Path::new(""), &Named(&[]))).unwrap();
    assert_eq!(by_words, by_text);
    // A host whose name begins like the program's is a URL.
    let words = ["http://curl/".to_owned()];
    assert!(checked_alone(import_words(&words, Path::new(""), &Named(&[]))).is_ok());
}
