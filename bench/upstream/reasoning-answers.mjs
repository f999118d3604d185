import { vendorForm } from './vendor-answers.mjs';

/** Reasoning alone, as an answer has it that ends before its text: what is measured is the field. @type {import('./answers.mjs').Answers} */
export const reasoningAnswers = vendorForm({
  message: (text) => `"content":"","reasoning_content":${JSON.stringify(text)},"refusal":null,"annotations":[]`,
  delta: (text) => `"reasoning_content":"${text}"`,
  finish: 'stop',
});
