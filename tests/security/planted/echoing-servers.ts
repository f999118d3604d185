import type { ServerResponse } from 'node:http';
import { type HttpDouble, openHttpDouble, type ReceivedRequest } from '../../../services/effect-worker/test-support/http-double.ts';

/** How a server answers that repeats its request, with the credential in it. */
export const ECHOES = [
  'echo-400',
  'echo-401',
  'echo-403',
  'echo-404',
  'echo-429',
  'echo-500',
  'echo-text',
  'echo-event',
  'echo-redirect',
  'echo-broken',
] as const;
type Echo = (typeof ECHOES)[number];

/** A provider of models in all dialects, named by the model or by the last message; without one it answers as OpenAI does. */
export function openEchoingProvider(): Promise<HttpDouble> {
  return openHttpDouble((request, response) => {
    const text = `${request.url} ${request.body.toString()}`;
    const echo = ECHOES.find((one) => text.includes(one));
    if (echo === undefined) answer(request, response);
    else repeat(echo, request, response);
  });
}

/** A receiver of callbacks and events, and a server of tools: the first answer to each address repeats the request, later ones accept it. */
export function openEchoingReceiver(): Promise<HttpDouble> {
  const seen = new Set<string>();
  return openHttpDouble((request, response) => {
    const isFirst = !seen.has(request.url);
    seen.add(request.url);
    if (isFirst) repeat('echo-500', request, response);
    else response.writeHead(204).end();
  });
}

/** Of tools: it refuses every request with all of it. */
export function openEchoingTools(): Promise<HttpDouble> {
  return openHttpDouble((request, response) => repeat('echo-401', request, response));
}

function repeat(echo: Echo, { url, headers, body }: ReceivedRequest, response: ServerResponse): void {
  const credentials = [headers.authorization, headers['x-api-key'], headers['x-goog-api-key']].filter((one) => one !== undefined).join(' ');
  const said = `refused: ${JSON.stringify({ url, headers })} for ${credentials}; in base64 ${Buffer.from(credentials).toString('base64')}`;
  const error = JSON.stringify({
    type: 'error',
    error: { type: 'refused', code: credentials, message: said, status: 'REFUSED', metadata: { headers, raw: body.toString() } },
  });
  const json = { 'content-type': 'application/json', 'x-refused': credentials, 'www-authenticate': credentials };
  const [, kind = ''] = echo.split('-');
  if (/^\d/.test(kind)) response.writeHead(Number(kind), json).end(error);
  else if (kind === 'text') response.writeHead(502, { 'content-type': 'text/html' }).end(`<html>${said}</html>`);
  else if (kind === 'redirect') response.writeHead(302, { location: `http://127.0.0.1:9/?key=${encodeURIComponent(credentials)}` }).end(said);
  else if (kind === 'event') response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`event: error\ndata: ${error}\n\n`);
  else response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: {"id":"${credentials}\n\n${said}`);
}

/** A message, or the output of a run. */
function answer({ body }: ReceivedRequest, response: ServerResponse): void {
  const { stream = false, tools = [] } = JSON.parse(body.toString() || '{}');
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'emit_output', arguments: '{"done":true}' } };
  const message = tools.length > 0 ? { role: 'assistant', content: null, tool_calls: [call] } : { role: 'assistant', content: 'It is done.' };
  const reason = tools.length > 0 ? 'tool_calls' : 'stop';
  const usage = { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 };
  const base = { id: 'chatcmpl-1', created: 1, model: 'plain' };
  if (!stream) {
    const whole = { ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: reason }], usage };
    return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
  }
  const chunk = (delta: object, finish: string | null) => ({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] });
  const chunks = [chunk(message, null), chunk({}, reason), { ...base, object: 'chat.completion.chunk', choices: [], usage }];
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`);
}
