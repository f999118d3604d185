interface ChoiceProps {
  label: string;
  /** What stands for no choice. */
  any: string;
  values: readonly string[];
  /** @param value empty: none */
  onChoice(value: string): void;
}

/** One of some values, or any. */
export function Choice({ label, any, values, onChoice }: ChoiceProps) {
  return (
    <select aria-label={label} onChange={({ currentTarget: { value } }) => onChoice(value)}>
      <option value="">{any}</option>
      {values.map((value) => (
        <option key={value}>{value}</option>
      ))}
    </select>
  );
}
