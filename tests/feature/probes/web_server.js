// Serves HTTP/2 over TLS and a WebSocket that answers in upper case:
// node web_server.js TLS_PORT PORT CERTIFICATE KEY
const [tlsPort, port, certificate, key] = process.argv.slice(1);
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const http2 = require('http2');

const identity = { cert: fs.readFileSync(certificate), key: fs.readFileSync(key) };
http2.createSecureServer({ ...identity, allowHTTP1: true }, (request, response) => {
  let length = 0;
  request.on('data', (chunk) => { length += chunk.length; });
  request.on('end', () => response.end(`HTTP/${request.httpVersion}, ${length} bytes\n`));
}).listen(tlsPort, '::');

const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const server = http.createServer();
server.on('upgrade', (request, socket) => {
  const accept = crypto.createHash('sha1')
    .update(request.headers['sec-websocket-key'] + MAGIC).digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n'
    + `Connection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.on('data', (frame) => {
    // One short masked frame at a time is all that the client sends.
    const mask = frame.subarray(2, 6);
    const text = frame.subarray(6).map((byte, index) => byte ^ mask[index % 4]);
    const answer = Buffer.from(Buffer.from(text).toString().toUpperCase());
    socket.write(Buffer.concat([Buffer.from([0x81, answer.length]), answer]));
  });
  socket.on('end', () => socket.end());
  socket.on('error', () => {});
});
server.listen(port, '::');
