import { connect } from '@nats-io/transport-node';
import { Pool } from 'undici';

/** The broker on one side, the upstream on the other. */
const connection = await connect({ servers: process.env.NATS_URL ?? '' });
const pool = new Pool(new URL(process.env.UPSTREAM_URL ?? '').origin, { connections: 128 });

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
  message.respond(JSON.stringify(await answer.body.json()));
}
