import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, createInbox } from '@nats-io/transport-node';

const LOOK_AGAIN_MS = 50;

/** HTTP on one side, the broker on the other. */
const connection = await connect({ servers: process.env.NATS_URL ?? '' });
const inbox = `${createInbox()}.`;
/** @type {Map<number, import('node:http').ServerResponse>} */
const waiting = new Map();
let asked = 0;

connection.subscribe(`${inbox}*`, {
  callback: (_error, { subject, data }) => {
    const call = Number(subject.slice(inbox.length));
    const response = waiting.get(call);
    waiting.delete(call);
    response?.writeHead(200, { 'content-type': 'application/json', 'content-length': data.length });
    response?.end(data);
  },
});

// The parent waits for its port, with a timeout.
while (!(await connection.request('ready').catch(() => null))) await delay(LOOK_AGAIN_MS);
createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    asked += 1;
    waiting.set(asked, response);
    const { url: path, headers } = request;
    const item = { path, authorization: headers.authorization, body: JSON.parse(Buffer.concat(chunks).toString()) };
    connection.publish('calls', JSON.stringify(item), { reply: `${inbox}${asked}` });
  });
}).listen(Number(process.env.PORT), '127.0.0.1');
