// Receives callbacks of runs and posted events:  AGENT_API_KEY=… PORT=9000 node examples/receiver/receiver.mjs
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

const MAX_BYTES = 4 * 1024 * 1024;
const { AGENT_API_KEY: key, PORT: port = '9000', HOST: host = '127.0.0.1' } = process.env;
if (!key) throw new Error('AGENT_API_KEY is not set: the bearer of callbacks could not be verified');
const digest = (text) => createHash('sha256').update(text).digest();
const seen = new Set(); // in production a unique column, written in the transaction that acts on the body

/** @returns the status of the answer: 2xx ends the delivery, all others are repeated */
async function receive(request) {
  const { headers } = request;
  if (!timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${key}`))) return 401;
  if (!(Number(headers['content-length']) <= MAX_BYTES)) return 413;
  const body = await json(request);
  const id = body.run_id ?? `${headers['x-session-id']} ${body.offset}`;
  if (!seen.has(id)) console.log(JSON.stringify(body)); // what you do with it, once
  seen.add(id);
  return 204;
}

const server = createServer(async (request, response) => {
  const status = await receive(request).catch(() => 400);
  response.writeHead(status, { connection: 'close' }).end();
});
server.listen(Number(port), host, () => console.error(`listening on http://${host}:${server.address().port}`));
