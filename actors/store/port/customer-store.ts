/** A value of a variable. `key`: a customer's id, `tag:<tag>`, or `DEFAULT`. */
interface StoredValue {
  key: string;
  name: string;
  data: unknown;
  /** By the database's clock. */
  updatedAtMs: number;
}

/** What gateways have stored about a customer. */
export interface StoredCustomer {
  /** Null: there is no such customer. */
  name: string | null;
  tags: string[];
  /** Of the customer, its tags, and all customers; in no order. */
  values: StoredValue[];
}

export interface CustomerStore {
  /** @param names of the variables that are read; a customer that does not exist has the values for all customers */
  read(customerId: string, names: readonly string[]): Promise<StoredCustomer>;
}
