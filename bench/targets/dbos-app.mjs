import { createServer } from 'node:http';
import { DBOS } from '@dbos-inc/dbos-sdk';

const { DATABASE_URL: systemDatabaseUrl = '', MODEL_URL: modelUrl = '', PORT: port } = process.env;

/** One turn: one workflow with one step, whose result is stored before the workflow goes on. */
const turn = DBOS.registerWorkflow(async (/** @type {string} */ text) => DBOS.runStep(() => callModel(text), { name: 'callModel' }), { name: 'turn' });

DBOS.setConfig({ name: 'bench', systemDatabaseUrl, logLevel: 'warn' });
await DBOS.launch();

createServer((request, response) => {
  let body = '';
  request.on('data', (bytes) => {
    body += bytes;
  });
  request.on('end', () => {
    answer(body).then(
      (text) => response.writeHead(200, { 'content-type': 'application/json' }).end(text),
      (error) => response.writeHead(500).end(String(error)),
    );
  });
}).listen(Number(port), '127.0.0.1');

/** @param {string} body */
async function answer(body) {
  const { text } = JSON.parse(body);
  const handle = await DBOS.startWorkflow(turn)(text);
  return JSON.stringify({ id: handle.workflowID, reply: await handle.getResult() });
}

/** @param {string} text @returns {Promise<string>} */
async function callModel(text) {
  const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: text }] });
  const response = await fetch(modelUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  const completion = /** @type {{ choices: { message: { content: string } }[] }} */ (await response.json());
  return completion.choices[0]?.message.content ?? '';
}
