import { describe, expect, it } from 'vitest';
import { paramFaultOf, paramHeadersOf } from './param-headers.ts';

const property = (type: unknown, header: unknown = 'Region') => ({ type, 'x-mcp-header': header });
const schema = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

describe('headers of arguments', () => {
  it('mirror annotated properties at any depth, and nothing that is absent', () => {
    const annotated = schema({
      region: property('string', 'Region'),
      place: schema({ floor: property('integer', 'Floor'), quiet: property('boolean', 'Quiet'), gone: property('string', 'Gone') }),
      plain: { type: 'string' },
    });
    const args = { region: 'eu', place: { floor: 3, quiet: false, gone: null }, plain: 'x' };
    expect(paramFaultOf(annotated)).toBeNull();
    expect(paramHeadersOf(annotated, args)).toEqual({ 'Mcp-Param-Region': 'eu', 'Mcp-Param-Floor': '3', 'Mcp-Param-Quiet': 'false' });
    expect(paramHeadersOf(annotated, {})).toEqual({});
  });

  it.each([
    ['Zürich', '=?base64?WsO8cmljaA==?='],
    [' padded', '=?base64?IHBhZGRlZA==?='],
    ['two\r\nlines', '=?base64?dHdvDQpsaW5lcw==?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
    ['', '=?base64??='],
  ])('encode %j, which would not pass in a header', (value, encoded) => {
    expect(paramHeadersOf(schema({ region: property('string') }), { region: value })).toEqual({ 'Mcp-Param-Region': encoded });
  });

  it.each([
    ['a number', schema({ a: property('number') })],
    ['an object', schema({ a: property('object') })],
    ['a property without a type', schema({ a: { 'x-mcp-header': 'A' } })],
    ['a list’s items', schema({ a: { type: 'array', items: property('string') } })],
    ['a branch', schema({}, { anyOf: [schema({ a: property('string') })] })],
    ['a definition', schema({}, { $defs: { a: property('string') } })],
    ['the arguments themselves', { type: 'object', 'x-mcp-header': 'A' }],
    ['a name that is none', schema({ a: property('string', 'two words') })],
    ['an empty name', schema({ a: property('string', '') })],
    ['a name that is no string', schema({ a: property('string', 7) })],
    ['two properties of one name', schema({ a: property('string', 'Region'), b: property('string', 'region') })],
  ])('are refused at %s', (_, broken) => {
    expect(paramFaultOf(broken)).not.toBeNull();
  });

  it('are not looked for in values', () => {
    expect(paramFaultOf(schema({ a: { type: 'string', default: { 'x-mcp-header': 7 }, enum: [property('number')] } }))).toBeNull();
  });
});
