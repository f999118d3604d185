import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, createInbox } from '@nats-io/transport-node';

const LOOK_AGAIN_MS = 50;
const STREAM_HEAD = { 'content-type': 'text/event-stream' };

/** HTTP on one side, the broker on the other. */
const connection = await connect({ servers: process.env.NATS_URL ?? '' });
const inbox = `${createInbox()}.`;
/** @type {Map<number, { response: import('node:http').ServerResponse, isStream: boolean }>} */
const waiting = new Map();
let asked = 0;

connection.subscribe(`${inbox}*`, {
  callback: (_error, { subject, data }) => {
    const call = Number(subject.slice(inbox.length));
    const { response, isStream } = waiting.get(call) ?? {};
    if (response === undefined) return;
    // A stream is a message for each event, and an empty one at its end.
    const isOver = !isStream || data.length === 0;
    if (isOver) waiting.delete(call);
    if (!isStream) response.writeHead(200, { 'content-type': 'application/json', 'content-length': data.length });
    else if (!response.headersSent) response.writeHead(200, STREAM_HEAD);
    if (isOver) response.end(data);
    else response.write(data);
  },
});

// The parent waits for its port, with a timeout.
while (!(await connection.request('ready').catch(() => null))) await delay(LOOK_AGAIN_MS);
createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const { url: path, headers } = request;
    const item = { path, authorization: headers.authorization, body: JSON.parse(Buffer.concat(chunks).toString()) };
    asked += 1;
    waiting.set(asked, { response, isStream: item.body.stream === true });
    connection.publish('calls', JSON.stringify(item), { reply: `${inbox}${asked}` });
  });
}).listen(Number(process.env.PORT), '127.0.0.1');
