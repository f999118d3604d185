/** The value of a key that may be any text of a document or a caller: names that objects inherit, like `constructor`, are not found. */
export function ownValue<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
