import { describe, expect, it } from 'vitest';
import { selectedWay } from './selected-way.ts';
import { chat, fork, modelOf, tool, way } from './test-support/routines.ts';

const { graph } = modelOf(
  'booking',
  [chat('people'), fork('size'), chat('time'), chat('events'), tool('book'), chat('confirm'), chat('left'), chat('right'), chat('join')],
  [
    way('people', 'size'),
    way('size', 'time', 'At most 8'),
    way('size', 'events', 'More than 8'),
    way('time', 'book'),
    way('book', 'confirm'),
    way('events', 'left', 'l'),
    way('events', 'right', 'r'),
    way('left', 'join'),
    way('right', 'join'),
  ],
);

describe('rule 38: where a routine goes back', () => {
  it.each([
    ['stays at the step that it goes back to', 'people', [], 'people', []],
    ['goes along the edges', 'people', ['people', 'size'], 'time', ['size', 'time']],
    ['gets the single node that is missing between two', 'people', [], 'events', ['size', 'events']],
    ['passes over steps that are out of place', 'people', ['confirm', 'join', 'unknown', 'size'], 'time', ['size', 'time']],
    ['stops at the first tool step, whose result is not known', 'people', ['size', 'time', 'book'], 'confirm', ['size', 'time', 'book']],
    ['stops at a tool step that was missing', 'time', [], 'confirm', ['book']],
    ['may end', 'confirm', [], 'end', null],
    ['is left when the last step can not be reached', 'people', ['size', 'time'], 'events', null],
    ['is left when several nodes could be missing', 'events', [], 'join', null],
    ['is left when the last step is a fork', 'people', [], 'size', null],
    ['is left when the model says so', 'people', ['size'], null, null],
    ['is left when the target is unknown', 'unknown', [], 'time', null],
  ])('%s', (_case, target, advanced, next, expected) => {
    expect(selectedWay(graph, { target, advanced, next })).toEqual(expected);
  });
});
