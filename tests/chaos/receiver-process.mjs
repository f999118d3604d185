// The receiver of `openReceiverProcess` (receiver-process.ts), in a process of its own: it says over IPC where it listens and what was posted.
import { createServer } from 'node:http';

/** Posts so far, by path. @type {Map<string, number>} */
const posts = new Map();

// Not awaited: a busy parent would keep the response waiting. Messages keep their order.
/** @param {object} message */
const send = (message) => void process.send?.(message);

/** The responses of an address are the last segment of its path; the last of them is repeated. @param {string} path */
function nextAnswer(path) {
  const answers = path.slice(path.lastIndexOf('/') + 1).split(',');
  const post = posts.get(path) ?? 0;
  posts.set(path, post + 1);
  return answers[Math.min(post, answers.length - 1)];
}

const http = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { url: path = '', headers } = request;
  send({ path, headers, body: Buffer.concat(chunks).toString() });
  const answer = nextAnswer(path);
  if (answer === 'drop') response.socket?.destroy();
  else response.writeHead(Number(answer)).end();
});

process.on('message', () => send({ isEcho: true }));
// The test has ended, in whatever way.
process.on('disconnect', () => process.exit());
http.listen(0, '127.0.0.1', () => {
  const address = http.address();
  if (typeof address === 'object' && address !== null) send({ port: address.port });
});
