import { connect } from '@nats-io/transport-node';
import { Pool } from 'undici';

const EVENT_END = '\n\n';
const DONE = 'data: [DONE]';

/** The broker on one side, the upstream on the other. */
const connection = await connect({ servers: process.env.NATS_URL ?? '' });
const pool = new Pool(new URL(process.env.UPSTREAM_URL ?? '').origin, { connections: 2_048 });

connection.subscribe('calls', {
  queue: 'workers',
  callback: (_error, message) => void handle(message),
});

connection.subscribe('ready', { callback: (_error, message) => void message.respond() });

/** @param {import('@nats-io/transport-node').Msg} message */
async function handle(message) {
  const { path, authorization, body } = JSON.parse(message.string());
  const headers = { 'content-type': 'application/json', authorization };
  const answer = await pool.request({ method: 'POST', path, headers, body: JSON.stringify(body) });
  if (body.stream === true) await relay(answer.body, message);
  else message.respond(JSON.stringify(await answer.body.json()));
}

/** Parses each event, and sends it as a message. @param {import('undici').Dispatcher.ResponseData['body']} events @param {import('@nats-io/transport-node').Msg} message */
async function relay(events, message) {
  let unread = '';
  events.setEncoding('utf8');
  for await (const text of events) {
    unread += text;
    for (let end = unread.indexOf(EVENT_END); end >= 0; end = unread.indexOf(EVENT_END)) {
      const event = unread.slice(0, end);
      unread = unread.slice(end + EVENT_END.length);
      message.respond(event === DONE ? `${DONE}${EVENT_END}` : `data: ${JSON.stringify(JSON.parse(event.slice('data: '.length)))}${EVENT_END}`);
    }
  }
  message.respond('');
}
