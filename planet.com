0.00021223999258445769 : Mass of the planets (in mstar)
29.209968842604802 : Semi-major axes
0.06961231138633762 : Eccentricities
18.405485523479623 : Inclinaison (deg)
1 : is Inclinaison damping?
1 : planets feel Disk ?
1 : planets feel others ?
0 : Accretion onto planets ?
1.66 : Accretion parameter
0.001 : Maximum mass of the planet
0.4 : Smoothing
1.0 : Region excluded from torque calculation
