import { vendorForm } from './vendor-answers.mjs';

const NAME = '"id":"call_0123456789abcdefABCDEF01","type":"function"';
const FUNCTION = '"name":"find_order"';

/** A call of a function, whose arguments are the tokens. @type {import('./answers.mjs').Answers} */
export const toolAnswers = vendorForm({
  message: (text) => `"content":null,"tool_calls":[{${NAME},"function":{${FUNCTION},"arguments":${JSON.stringify(text)}}}],"refusal":null,"annotations":[]`,
  first: `,"tool_calls":[{"index":0,${NAME},"function":{${FUNCTION},"arguments":""}}]`,
  delta: (text) => `"tool_calls":[{"index":0,"function":{"arguments":"${text}"}}]`,
  finish: 'tool_calls',
});
