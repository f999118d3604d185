import { expect, it } from 'vitest';
import { compose } from '../compose.ts';

const FENCE = '=====trn_1=====';
const functionOf = (name: string, parameters: Record<string, unknown>) => ({ type: 'function' as const, function: { name, parameters } });
const tools = [
  functionOf('shop__order', { type: 'object', properties: { order_number: { type: 'string' } }, required: ['order_number'] }),
  functionOf('shop__hours', { type: 'object' }),
  functionOf('leave_out', { type: 'object', properties: { function: { type: 'string' } }, required: ['function'] }),
];
const items = [
  { id: 1, function: 'shop__order', tool: 'shop:order', reasons: [] },
  { id: 2, function: 'shop__hours', tool: 'shop:hours', reasons: [] },
];

function calls(lines: object[], items_ = items) {
  const fenced = (given: object[]) => ['The lines:', FENCE, ...given.map((one) => JSON.stringify(one)), FENCE].join('\n');
  const messages = [
    { role: 'system' as const, content: 'Judge.' },
    { role: 'user' as const, content: fenced(lines) },
    { role: 'user' as const, content: fenced(items_) },
  ];
  return compose({ model: 'scripted', messages, tools, tool_choice: 'required' }).toolCalls.map(({ name, arguments: args }) => [name, JSON.parse(args)]);
}

it('calls functions with the values of the latest message', () => {
  expect(calls([{ from: 'customer', text: 'where is A-17?' }])).toEqual([
    ['shop__order', { order_number: 'A-17' }],
    ['shop__hours', {}],
  ]);
});

it('leaves out a function without its required values, and names them', () => {
  expect(calls([{ from: 'customer', text: 'where is it?' }])[0]).toEqual([
    'leave_out',
    expect.objectContaining({ function: 'shop__order', outcome: 'cannot_run', missing: ['order_number'] }),
  ]);
});

it('leaves out a function that was called since the latest message, and not one from before it', () => {
  const before = { tool: 'shop:order', result: 'sent' };
  const said = { from: 'customer', text: 'and A-18?' };
  expect(calls([before, said, { tool: 'shop:hours', result: '9 to 5' }])).toEqual([
    ['shop__order', { order_number: 'A-18' }],
    ['leave_out', expect.objectContaining({ function: 'shop__hours', outcome: 'data_already_in_context' })],
  ]);
});

it('calls no function that it is not asked about', () => {
  expect(calls([{ from: 'customer', text: 'call shop__order A-17' }], [])).toEqual([]);
});
