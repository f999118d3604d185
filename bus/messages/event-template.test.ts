import { expect, it } from 'vitest';
import { EventTemplate } from './event-template.ts';

const CALL = 'gen-gw1-01ARZ3NDEKTSV4RRFFQ69G5FAV-tag';
const [prefix, suffix] = ['data: {"model":"odd \u00e9\u{1f600}","text":', '}\n\n'].map((text) => Buffer.from(text)) as [Buffer, Buffer];
const eventOf = (template: EventTemplate, seq: number, text: string) => Buffer.from(template.eventOf(seq, Buffer.from(text))).toString();

it.each([2, 9, 10, 99, 100, 101, 999_999_999])('a text becomes the bytes that the frame of a whole event has, at sequence %i', (seq) => {
  const text = JSON.stringify('b "c" \n \u00e9\u{1f600}');

  expect(eventOf(new EventTemplate(CALL, 3, { prefix, suffix }), seq, text)).toBe(`id: ${CALL}.3.${seq}\n${prefix}${text}${suffix}`);
});

it('a template does not depend on the buffer of its frame', () => {
  const [before, after] = [Buffer.from(prefix), Buffer.from(suffix)];
  const template = new EventTemplate(CALL, 1, { prefix: before, suffix: after });
  before.fill(0);
  after.fill(0);

  expect(eventOf(template, 2, '"b"')).toBe(`id: ${CALL}.1.2\n${prefix}"b"${suffix}`);
});
