// node websocket_client.js URL WORD...: says each word, prints each answer.
const [url, ...words] = process.argv.slice(1);
const request = require('http').get(url, {
  headers: {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': Buffer.alloc(16, 7).toString('base64'),
  },
});
request.on('upgrade', (response, socket) => {
  const say = () => {
    const word = words.shift();
    if (word === undefined) return socket.end();
    const mask = Buffer.from([1, 2, 3, 4]);
    const text = Buffer.from(word).map((byte, index) => byte ^ mask[index % 4]);
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length]), mask, text]));
  };
  socket.on('data', (frame) => {
    console.log(frame.subarray(2).toString());
    say();
  });
  say();
});
