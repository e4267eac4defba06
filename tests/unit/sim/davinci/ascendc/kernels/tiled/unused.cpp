int NobodyHasThis();
int NobodyCallsThis() { return NobodyHasThis(); }
