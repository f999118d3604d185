import { chunk, tokenText, usageOf } from './answer-parts.mjs';

const HEAD_OF_STREAM = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const BEFORE_CONTENT = 'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{';
const AFTER_CONTENT = '"},"finish_reason":null}]}\n\n';
const FINISH = `${BEFORE_CONTENT}},"finish_reason":"stop"}]}\n\n`;
const USAGE_HEAD = 'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":';

/** The least that is valid: no field that a chunk may be without. @type {import('./answers.mjs').Answers} */
export const plainAnswers = {
  whole: (tokens) => {
    const content = Array.from({ length: tokens }, (_, number) => tokenText(0, number)).join('');
    const choice = { index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' };
    const body = JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion', created: 1, model: 'bench', choices: [choice], usage: usageOf(tokens) });
    return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  },
  head: () => HEAD_OF_STREAM,
  token: (id, number) => {
    const role = number === 0 ? '"role":"assistant",' : '';
    return chunk(`${BEFORE_CONTENT}${role}"content":"${tokenText(id, number)}${AFTER_CONTENT}`);
  },
  end: (tokens, { usage }) => {
    const last = usage ? `${USAGE_HEAD}${JSON.stringify(usageOf(tokens))}}\n\n` : '';
    return `${chunk(`${FINISH}${last}data: [DONE]\n\n`)}0\r\n\r\n`;
  },
};
